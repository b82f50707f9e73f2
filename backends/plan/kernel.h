#pragma once

#include <cstdint>

namespace rondo {

/// One instruction of a plan, bound to its memory. Runs on one thread at a time.
class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;

  virtual void run() = 0;
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
