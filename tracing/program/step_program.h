#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backends/step.h"
#include "core/call_stack.h"

namespace rondo {

/// Index of a slot in its program.
using SlotId = int32_t;

/// An undefined tensor, or a hole in a list of tensors.
inline constexpr SlotId kNoTensor = -1;

enum class SlotKind {
  Input,     ///< a tensor of the batch; another one in each step
  Captured,  ///< a tensor that lives outside of the step, held by reference
  Constant,  ///< bytes frozen into the program
  Produced   ///< the result of an instruction
};

/// A tensor of the step: a view (sizes, strides, offset) of a storage. Two slots of one storage see
/// each other's writes.
struct Slot {
  SlotKind kind = SlotKind::Produced;
  std::string name;  ///< of an input or of captured state
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t offset = 0;              ///< in elements, from the storage's start
  int32_t storage = 0;             ///< numbered by first appearance in the step
  bool is_wrapped_number = false;  ///< a host number: weaker than tensors in type promotion
  c10::Device device = c10::kCPU;  ///< where its storage is
  at::Tensor value;                ///< Captured: the live tensor. Constant: the program's own copy
};

/// One argument of an instruction.
struct Argument {
  enum class Kind { Constant, Tensor, TensorList };

  Kind kind = Kind::Constant;
  c10::IValue constant;
  std::vector<SlotId> slots;  ///< one for Tensor

  static Argument constant_of(c10::IValue constant) {
    return {Kind::Constant, std::move(constant), {}};
  }

  static Argument tensor_of(SlotId slot) { return {Kind::Tensor, c10::IValue(), {slot}}; }
};

/// One result: like an argument. A Constant is a number on the host that follows from shapes.
using Result = Argument;

/// One operator of the step, with what it does besides computing its results.
struct Instruction {
  c10::OperatorHandle op;
  std::vector<Argument> arguments;  ///< one for each of the schema
  std::vector<Result> results;      ///< one for each return of the schema
  std::vector<SlotId> writes;       ///< arguments whose bytes change
  bool draws_random = false;
  bool is_opaque = false;      ///< may do anything
  bool is_allocation = false;  ///< of memory that later instructions fill
  /// Its kernel asks whether gradients will be wanted, and they were: oneDNN's LSTM keeps a
  /// workspace for them then.
  bool needs_grad_mode = false;
  int32_t location = 0;  ///< index into `StepProgram::locations`
  int32_t origin = 0;    ///< index into `StepProgram::origins`
};

enum class StepPhase { Forward, Backward, Update };

const char* to_string(StepPhase phase);

/// The code that an instruction comes from.
struct Origin {
  StepPhase phase = StepPhase::Forward;
  std::string module;   ///< "net.0"; "after net.0" when it has no parameters; "" when not known
  std::string node;     ///< of autograd's graph, in backward, such as "AddmmBackward0"
  int32_t forward = 0;  ///< the origin of the operator whose gradient it computes; 0: not known
  CallStack stack;      ///< in forward and update
  std::string script;   ///< place in the source of a TorchScript module; "" in C++
};

/// What was running when an instruction was recorded.
struct Location {
  std::string callback;  ///< "" for the step itself
  std::string hook;
};

/// The tensors that one step closure gets. Its function is kept by who runs the program.
struct ClosureOutput {
  size_t index = 0;  ///< in the order in which the step queued its closures
  std::vector<SlotId> tensors;
  Cadence cadence;
};

/// A recorded step: what ran below autograd, in order, on named and numbered tensors. Passes turn
/// one into another; executors run it. Baked into it: constants, shapes, the order of operators.
/// The key of a step, the second capture and the verification guard what is baked.
struct StepProgram {
  std::string name;  ///< of the step, such as "train/update"
  std::vector<Slot> slots;
  int32_t storages = 0;  ///< how many there are
  std::vector<Instruction> instructions;
  std::vector<Location> locations = {Location()};
  std::vector<Origin> origins = {Origin()};  ///< the first one stands for "not known"
  std::vector<std::pair<std::string, SlotId>> outputs;
  std::vector<ClosureOutput> closures;
  std::vector<std::string> host_calls;  ///< names, by the number that `rondo::host_call` gets
};

/// Calls `use` with each slot that the arguments name, holes left out.
template <class Use>
void for_each_slot(const std::vector<Argument>& arguments, Use use) {
  for (const Argument& argument : arguments) {
    for (const SlotId slot : argument.slots) {
      if (slot != kNoTensor) {
        use(slot);
      }
    }
  }
}

/// "aten::add.Tensor"
std::string operator_name(const c10::OperatorHandle& op);

/// The operator of a name, without an overload.
c10::OperatorHandle operator_named(const char* name);

/// "GradNorm.on_after_backward", or "the step" when no hook was running.
std::string to_string(const Location& location);

/// "forward of net.0", "backward of net.0 (AddmmBackward0)", "update".
std::string to_string(const Origin& origin);

/// What an instruction works for: "forward of net.0", "backward of net.0", "update", or the hook
/// that asked for it, such as "GradNorm.on_after_backward".
std::string module_of(const StepProgram& program, const Instruction& instruction);

/// The line of code that an instruction comes from, or the line whose gradient it computes: see
/// `source_of`. Slow.
std::string source_of(const StepProgram& program, const Instruction& instruction);

/// The line of code that an operator in forward or update comes from. Slow.
std::string source_of(const Origin& origin);

/// Exact text of a constant: equal texts are equal values, bit for bit.
std::string to_text(const c10::IValue& constant);

/// "float32[2, 3]" with strides where they are not the usual ones, and the device unless it is the
/// CPU.
std::string to_text(const Slot& slot);

/// "%7 = aten::addmm(%3, %0, %5, beta=1, alpha=1)"
std::string to_text(const Instruction& instruction);

/// The whole program for people to read, a line an instruction.
std::string to_text(const StepProgram& program);

/// Whether the elements lie row after row, without gaps.
bool is_contiguous(const Slot& slot);

int64_t numel(const Slot& slot);

/// Whether all tensors of an instruction are on devices of a type.
bool is_on(const StepProgram& program, const Instruction& instruction, c10::DeviceType device);

/// Bytes from a slot's storage's start to behind its last element.
int64_t extent_of(const Slot& slot);

/// Whether two slots reach bytes between the first and the last of each other.
bool may_share_bytes(const Slot& a, const Slot& b);

/// Bytes that each storage needs for the slots that lie in it.
std::vector<int64_t> bytes_of_storages(const StepProgram& program);

/// For each slot, whether something in the program names it.
std::vector<bool> used_slots(const StepProgram& program);

/// The first input whose memory an instruction writes; kNoTensor where none does.
SlotId written_input(const StepProgram& program);

/// Bytes of the captured tensors that the program uses, each storage counted once.
int64_t captured_bytes(const StepProgram& program);

/// The most bytes of results that live at a time when each is freed after its last use, which is
/// what the step needs as it is written, besides its state.
int64_t peak_of_results(const StepProgram& program);

}  // namespace rondo
