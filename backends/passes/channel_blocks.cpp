#include <algorithm>
#include <string>
#include <utility>

#include "backends/onednn/recorded_convolution.h"
#include "backends/passes/passes.h"
#include "backends/passes/storages.h"
#include "backends/program/arguments.h"
#include "core/vector_loop.h"

namespace rondo {

namespace {

using Places = std::vector<size_t>;

/// An operator that takes images in blocks of channels as well.
struct Taker {
  const char* op;
  const char* in_blocks;  ///< what it is called then
  Places arguments;       ///< that are images
  Places results;         ///< that are
  bool are_alike;         ///< all of them lie in one way; of others see `Choice`
};

const std::vector<Taker>& takers() {
  static const char* const kPool = "rondo::batch_norm_relu_pool";
  static const char* const kPoolBackward = "rondo::batch_norm_relu_pool_backward";
  static const std::vector<Taker> all = {
      {"aten::convolution", "rondo::convolution", {0}, {0}, false},
      {"aten::convolution_backward", "rondo::convolution_backward", {0, 1}, {0}, false},
      {"aten::native_batch_norm", "rondo::batch_norm", {0}, {0}, true},
      {"aten::native_batch_norm_backward", "rondo::batch_norm_backward", {0, 1}, {0}, true},
      {kPool, kPool, {0}, {0}, false},
      {kPoolBackward, kPoolBackward, {0, 2}, {0}, false},
      {"aten::relu", "aten::relu", {0}, {0}, true},
      {"aten::relu_", "aten::relu_", {0}, {0}, true},
      {"aten::threshold_backward", "aten::threshold_backward", {0, 1}, {0}, true},
      {"aten::add.Tensor", "aten::add.Tensor", {0, 1}, {0}, true},
      {"aten::add_.Tensor", "aten::add_.Tensor", {0, 1}, {0}, true},
  };
  return all;
}

bool are_there(const std::vector<Argument>& tensors, const Places& places) {
  return std::all_of(places.begin(), places.end(), [&](size_t i) { return !is_none(tensors[i]); });
}

/// Whether an instruction is one that its operator's kernels for blocks take.
bool is_fit(const StepProgram& program, const Instruction& instruction) {
  constexpr int64_t kSmallestPlane = 8;  // elements, of a batch norm's gradient: a vector
  if (has_name(instruction, "aten::convolution")) {
    const auto shape = shape_of_convolution(program, instruction);
    return shape && agrees_with_libtorch(*shape);
  }
  if (has_name(instruction, "aten::convolution_backward")) {
    const auto shape = shape_of_convolution_backward(program, instruction);
    return shape && agrees_with_libtorch(*shape);
  }
  if (has_name(instruction, "aten::native_batch_norm")) {
    return is_constant(instruction.arguments[5], 1) &&
           are_there(instruction.arguments, {1, 2, 3, 4});
  }
  if (has_name(instruction, "aten::native_batch_norm_backward")) {
    const Slot* const x = slot_at(program, instruction.arguments, 1);
    return is_constant(instruction.arguments[7], 1) &&
           are_there(instruction.arguments, {2, 5, 6}) &&
           are_there(instruction.results, {0, 1, 2}) && x != nullptr && x->sizes.size() == 4 &&
           x->sizes[2] * x->sizes[3] >= kSmallestPlane;
  }
  return true;
}

/// Null where an instruction takes no images in blocks.
const Taker* taker_of(const StepProgram& program, const Instruction& instruction) {
  const auto found = std::find_if(takers().begin(), takers().end(), [&](const Taker& taker) {
    return has_name(instruction, taker.op);
  });
  return found != takers().end() && is_fit(program, instruction) ? &*found : nullptr;
}

SlotId slot_or_none(const std::vector<Argument>& arguments, size_t i) {
  return arguments[i].kind == Argument::Kind::Tensor ? arguments[i].slots[0] : kNoTensor;
}

/// Which images of a step lie in blocks: those that only takers see. Where the two sides of a
/// pooled batch norm differ, windows are copied, which are a quarter of the image.
class Choice {
 public:
  Choice(const StepProgram& program, int64_t block) : program_(program) {
    find_candidates(block);
    while (drop_what_does_not_fit()) {
    }
  }

  bool contains(SlotId slot) const {
    return slot != kNoTensor && is_in_[static_cast<size_t>(slot)];
  }

 private:
  void find_candidates(int64_t block) {
    const StorageFacts facts(program_);
    const std::vector<bool> is_used = used_slots(program_);
    std::vector<int> slots_of(static_cast<size_t>(program_.storages), 0);
    for (size_t i = 0; i < program_.slots.size(); ++i) {
      slots_of[static_cast<size_t>(program_.slots[i].storage)] += is_used[i] ? 1 : 0;
    }
    for (const Slot& slot : program_.slots) {
      const auto storage = static_cast<size_t>(slot.storage);
      is_in_.push_back(slot.kind == SlotKind::Produced && slot.dtype == at::kFloat &&
                       slot.sizes.size() == 4 && slot.offset == 0 && is_contiguous(slot) &&
                       numel(slot) > 0 && slot.sizes[1] % block == 0 && slots_of[storage] == 1 &&
                       !facts.escapes[storage]);
    }
    for (const Instruction& instruction : program_.instructions) {
      const Taker* const taker = taker_of(program_, instruction);
      drop_others(instruction.arguments, taker == nullptr ? Places() : taker->arguments);
      drop_others(instruction.results, taker == nullptr ? Places() : taker->results);
    }
  }

  // A tensor may be an image in one place and something else in another.
  void drop_others(const std::vector<Argument>& tensors, const Places& images) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (std::find(images.begin(), images.end(), i) == images.end()) {
        for (const SlotId slot : tensors[i].slots) {
          drop(slot);
        }
      }
    }
  }

  bool drop(SlotId slot) {
    const bool was_in = contains(slot);
    if (was_in) {
      is_in_[static_cast<size_t>(slot)] = false;
    }
    return was_in;
  }

  bool drop_what_does_not_fit() {
    bool has_dropped = false;
    for (const Instruction& instruction : program_.instructions) {
      const Taker* const taker = taker_of(program_, instruction);
      if (taker != nullptr) {
        has_dropped = drop_of(instruction, *taker) || has_dropped;
      }
    }
    return has_dropped;
  }

  bool drop_of(const Instruction& instruction, const Taker& taker) {
    const std::vector<Argument>& arguments = instruction.arguments;
    const SlotId result = slot_or_none(instruction.results, 0);
    if (taker.are_alike) {
      std::vector<SlotId> all = {result};
      for (const size_t i : taker.arguments) {
        all.push_back(slot_or_none(arguments, i));
      }
      return keep_together(all);
    }
    if (has_name(instruction, "aten::convolution_backward")) {
      return result != kNoTensor && keep_together({slot_or_none(arguments, 1), result});
    }
    if (has_name(instruction, "rondo::batch_norm_relu_pool")) {
      return !contains(slot_or_none(arguments, 0)) && drop(result);
    }
    if (has_name(instruction, "rondo::batch_norm_relu_pool_backward")) {
      const bool has_dropped = keep_together({slot_or_none(arguments, 2), result});
      return (!contains(result) && drop(slot_or_none(arguments, 0))) || has_dropped;
    }
    return false;
  }

  // All of them, or none.
  bool keep_together(const std::vector<SlotId>& slots) {
    const bool are_all_in =
        std::all_of(slots.begin(), slots.end(), [this](SlotId slot) { return contains(slot); });
    bool has_dropped = false;
    for (const SlotId slot : slots) {
      has_dropped = (!are_all_in && drop(slot)) || has_dropped;
    }
    return has_dropped;
  }

  const StepProgram& program_;
  std::vector<bool> is_in_;  // by slot
};

void set_sizes(Slot& slot, std::vector<int64_t> sizes) {
  slot.sizes = std::move(sizes);
  slot.strides.assign(slot.sizes.size(), 1);
  for (size_t i = slot.sizes.size() - 1; i > 0; --i) {
    slot.strides[i - 1] = slot.strides[i] * slot.sizes[i];
  }
}

class Rewriter {
 public:
  Rewriter(StepProgram program, int64_t block)
      : program_(std::move(program)), block_(block), choice_(program_, block) {}

  StepProgram run() {
    const size_t slots = program_.slots.size();
    std::vector<Instruction> before;
    before.swap(program_.instructions);
    for (Instruction& instruction : before) {
      rewrite(std::move(instruction));
    }
    for (size_t i = 0; i < slots; ++i) {
      if (choice_.contains(static_cast<SlotId>(i))) {
        put_in_blocks(program_.slots[i]);
      }
    }
    return std::move(program_);
  }

 private:
  using Sizes = std::vector<int64_t>;

  void rewrite(Instruction instruction) {
    const Taker* const taker = taker_of(program_, instruction);
    if (taker == nullptr || !has_chosen(instruction, *taker)) {
      program_.instructions.push_back(std::move(instruction));
      return;
    }
    instruction.op = operator_of(taker->in_blocks);
    const SlotId result = slot_or_none(instruction.results, 0);
    if (has_name(instruction, "rondo::batch_norm_relu_pool")) {
      rewrite_pooling(std::move(instruction));
      return;
    }
    if (has_name(instruction, "rondo::convolution")) {
      instruction.arguments.push_back(
          Argument::constant_of(choice_.contains(result) ? block_ : int64_t{0}));
    }
    if (has_name(instruction, "rondo::batch_norm_relu_pool_backward")) {
      SlotId& gradient = instruction.arguments[0].slots[0];
      gradient = choice_.contains(gradient) ? gradient : copied_to_blocks(gradient, instruction);
    }
    program_.instructions.push_back(std::move(instruction));
  }

  bool has_chosen(const Instruction& instruction, const Taker& taker) const {
    const auto is_chosen = [this](const std::vector<Argument>& tensors, const Places& images) {
      return std::any_of(images.begin(), images.end(), [&](size_t i) {
        return choice_.contains(slot_or_none(tensors, i));
      });
    };
    return is_chosen(instruction.arguments, taker.arguments) ||
           is_chosen(instruction.results, taker.results);
  }

  void rewrite_pooling(Instruction pooling) {
    const SlotId largest = slot_or_none(pooling.results, 0);
    put_in_blocks(program_.slots[static_cast<size_t>(slot_or_none(pooling.results, 1))]);
    if (choice_.contains(largest)) {
      program_.instructions.push_back(std::move(pooling));
      return;
    }
    Slot image = slot_of(program_, largest);
    image.storage = program_.storages++;
    put_in_blocks(image);
    const SlotId made = add(std::move(image));
    pooling.results[0] = Result::tensor_of(made);
    const Instruction after = pooling;
    program_.instructions.push_back(std::move(pooling));
    copy_from_blocks(made, largest, after);
  }

  void put_in_blocks(Slot& slot) const {
    const Sizes& sizes = slot.sizes;
    set_sizes(slot, {sizes[0], sizes[1] / block_, sizes[2], sizes[3], block_});
  }

  SlotId add(Slot slot) {
    program_.slots.push_back(std::move(slot));
    return static_cast<SlotId>(program_.slots.size() - 1);
  }

  /// The sizes of an image with its blocks of channels in a dimension of their own.
  Sizes split_sizes(const Slot& image) const {
    return {image.sizes[0], image.sizes[1] / block_, block_, image.sizes[2], image.sizes[3]};
  }

  // view, permute, clone
  SlotId copied_to_blocks(SlotId image, const Instruction& neighbour) {
    const Slot& whole = slot_of(program_, image);  // may be captured
    Slot split;
    split.dtype = whole.dtype;
    split.offset = whole.offset;
    split.storage = whole.storage;
    set_sizes(split, split_sizes(whole));
    const SlotId view = add(split);
    append("aten::view", {image, split.sizes}, view, neighbour);
    const SlotId turned = permuted(view, {0, 1, 3, 4, 2}, neighbour);
    return cloned(turned, neighbour);
  }

  // permute, clone, view
  void copy_from_blocks(SlotId image, SlotId to, const Instruction& neighbour) {
    const SlotId turned = permuted(image, {0, 1, 4, 2, 3}, neighbour);
    const SlotId copy = cloned(turned, neighbour);
    program_.slots[static_cast<size_t>(copy)].storage = slot_of(program_, to).storage;
    --program_.storages;
    append("aten::view", {copy, slot_of(program_, to).sizes}, to, neighbour);
  }

  /// A tensor, and numbers.
  struct Given {
    SlotId tensor;
    c10::IValue numbers;
  };

  SlotId permuted(SlotId image, const Sizes& order, const Instruction& neighbour) {
    const Slot& from = slot_of(program_, image);
    Slot turned = from;
    for (size_t i = 0; i < order.size(); ++i) {
      turned.sizes[i] = from.sizes[static_cast<size_t>(order[i])];
      turned.strides[i] = from.strides[static_cast<size_t>(order[i])];
    }
    const SlotId result = add(std::move(turned));
    append("aten::permute", {image, order}, result, neighbour);
    return result;
  }

  SlotId cloned(SlotId image, const Instruction& neighbour) {
    Slot copy = slot_of(program_, image);
    copy.storage = program_.storages++;
    copy.offset = 0;
    set_sizes(copy, copy.sizes);
    const SlotId result = add(std::move(copy));
    append("aten::clone", {image, at::MemoryFormat::Contiguous}, result, neighbour);
    return result;
  }

  void append(const char* op, const Given& given, SlotId result, const Instruction& neighbour) {
    Instruction made{operator_of(op),
                     {Argument::tensor_of(given.tensor), Argument::constant_of(given.numbers)},
                     {Result::tensor_of(result)},
                     {}};
    made.location = neighbour.location;
    made.origin = neighbour.origin;
    program_.instructions.push_back(std::move(made));
  }

  /// \param name  with overload, such as "aten::add.Tensor"
  static c10::OperatorHandle operator_of(const std::string& name) {
    const size_t dot = name.find('.');
    return c10::Dispatcher::singleton().findSchemaOrThrow(
        name.substr(0, dot).c_str(), dot == std::string::npos ? "" : name.c_str() + dot + 1);
  }

  StepProgram program_;
  int64_t block_;
  Choice choice_;
};

}  // namespace

StepProgram put_channels_in_blocks(StepProgram program) {
  const int64_t block = channel_block();
  const bool has_kernels = block > 0 && widest_instruction_set() == InstructionSet::Avx2;
  return !has_kernels ? program : Rewriter(std::move(program), block).run();
}

}  // namespace rondo
