#pragma once

#include <cstdint>

namespace rondo {

/// One instruction of a plan, bound to its memory. `run` is called by one thread at a time.
class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;

  virtual void run() = 0;

  /// Memory that it keeps, besides its arguments and results.
  virtual int64_t bytes() const { return 0; }
};

/// A kernel whose n-th result follows from the n-th elements of its arguments alone, and from
/// numbers, where all of them lie side by side: any part of it can be run by itself.
class ElementwiseKernel : public Kernel {
 public:
  /// How many there are; 0: it cannot be run in parts.
  virtual int64_t elements() const = 0;

  /// Several threads may call it at a time, for parts that do not overlap: it must not write
  /// members.
  /// \param first  a multiple of 16
  virtual void run_part(int64_t first, int64_t count) = 0;
};

/// Where the elements of a tensor lie. Looked up at each run: the tensors of a batch, and memory
/// that an operator of LibTorch allocated, lie elsewhere each time.
class Operand {
 public:
  Operand() = default;

  /// \param base    the storage's address is kept there; must outlive the operand
  /// \param offset  in bytes
  Operand(char* const* base, int64_t offset) : base_(base), offset_(offset) {}

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(*base_ + offset_);
  }

 private:
  char* const* base_ = nullptr;
  int64_t offset_ = 0;
};

}  // namespace rondo
