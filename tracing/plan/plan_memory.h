#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "core/memory_block.h"
#include "tracing/kernels/operands.h"
#include "tracing/program/step_program.h"

namespace rondo {

/// Who owns the bytes of a storage.
enum class Home {
  Outside,  ///< captured state and constants: where they lie when the plan is made
  Batch,    ///< bound before each run
  Arena,    ///< at a fixed place of the plan's one allocation
  Adopted   ///< what an operator without an out variant allocated in this run
};

/// Whether what is written there outlives a step's run.
inline bool is_outside(Home home) {
  return home == Home::Outside || home == Home::Batch;
}

/// The memory of a plan, and a tensor for each slot in it, made once. A tensor keeps its memory
/// alive, except where it lies in a batch. LibTorch refuses to resize the storages, each of which
/// has the bytes of its slots and no more. An operator that asks for more throws, but has changed
/// its tensor's shape by then: see `put_back`.
class PlanMemory final : public Operands {
 public:
  /// Gives a storage of the arena its memory, the same one each time.
  using PlaceStorage = std::function<c10::DataPtr(size_t storage, int64_t bytes)>;

  /// \param homes    one a storage of the program
  /// \param offsets  one a storage; bytes from the arena's start, for those that live there
  /// \throws NotSupportedError  when a tensor is on another device than the CPU
  PlanMemory(const StepProgram& program,
             const std::vector<Home>& homes,
             const std::vector<int64_t>& offsets,
             int64_t arena_bytes);

  /// The same with each storage of the arena in its own place. It has no bytes to fill.
  PlanMemory(const StepProgram& program, const std::vector<Home>& homes, PlaceStorage place);

  const at::Tensor& tensor(SlotId slot) const override;

  Operand operand(SlotId slot) const override;

  /// Of the slot's storage.
  Home home(SlotId slot) const;

  /// Puts a slot's elements at an address; other slots of its storage follow. The bytes must stay
  /// until it is bound again.
  void bind(SlotId slot, const void* elements);

  /// Takes over the memory of a tensor for a slot and the others of its storage; where somebody
  /// else holds it too, a copy of all of it.
  /// \param from  what returned it, for messages
  /// \throws CaptureError  when it has another shape or order of elements than the slot, or too
  ///                       little memory for the slots of its storage
  void adopt(SlotId slot, const at::Tensor& tensor, const c10::OperatorHandle& from);

  /// Whether a slot's tensor has its planned shape, strides, dtype, storage, address and bytes.
  bool is_as_planned(SlotId slot) const;

  /// Restores a slot's tensor after an operator gave it another shape or other memory.
  /// \throws CaptureError  when the operator replaced memory that the plan does not own
  void put_back(SlotId slot) const;

  /// Gives adopted memory back.
  void release(SlotId slot);

  int64_t arena_bytes() const { return arena_.bytes(); }

  /// Bytes from the arena's start to a storage that has a fixed place in it.
  int64_t arena_offset(size_t storage) const { return bases_[storage] - arena_.data(); }

  /// What the arena takes from the system: with the rest of its last large page.
  int64_t arena_bytes_taken() const { return arena_.extent().end - arena_.extent().begin; }

  /// Fills the arena with bytes that are NaN as floating-point numbers.
  void poison() { fill(0xFF); }

  /// Fills the arena with zeros.
  void clear() { fill(0); }

 private:
  struct Place {
    size_t storage;
    int64_t offset;  // in bytes, from the storage's base
  };

  // How a slot's tensor lies in its storage here.
  struct Layout {
    at::ScalarType dtype;
    std::vector<int64_t> sizes;
    std::vector<int64_t> strides;
    int64_t offset;  // in elements
    c10::Storage storage;
  };

  void make_tensors(const StepProgram& program);
  void fill(int byte);
  void take_outside(const Slot& slot);
  void place_in_arena(size_t storage);
  Layout layout_of(const Slot& slot) const;
  static at::Tensor make_tensor(const Slot& slot, const Layout& layout);
  bool has_its_memory(size_t storage) const;
  void put_back_memory(size_t storage) const;

  std::vector<Home> homes_;      // one a storage
  std::vector<Place> places_;    // one a slot
  std::vector<Layout> layouts_;  // one a slot
  MemoryBlock arena_;
  PlaceStorage place_;
  std::vector<c10::Storage> storages_;
  std::vector<int64_t> bytes_;  // one a storage
  std::vector<int64_t>
      shifts_;                // bytes that a storage begins later here than where it was recorded
  std::vector<char*> bases_;  // one a storage, as recorded; operands point into it
  std::vector<at::Tensor> tensors_;
};

}  // namespace rondo
