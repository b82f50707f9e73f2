#include <string>
#include <utility>

#include "core/vector_loop.h"
#include "tracing/onednn/convolution.h"
#include "tracing/passes/images_in_blocks.h"
#include "tracing/passes/passes.h"
#include "tracing/program/arguments.h"
#include "tracing/program/storages.h"

namespace rondo {

namespace {

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
      : program_(std::move(program)), block_(block), images_(images_in_blocks(program_, block)) {}

  StepProgram run() {
    const size_t slots = program_.slots.size();
    std::vector<Instruction> before;
    before.swap(program_.instructions);
    for (size_t i = 0; i < before.size(); ++i) {
      rewrite(std::move(before[i]), images_.operators[i]);
    }
    for (size_t i = 0; i < slots; ++i) {
      if (images_.contains(static_cast<SlotId>(i))) {
        put_in_blocks(program_.slots[i]);
      }
    }
    return std::move(program_);
  }

 private:
  using Sizes = std::vector<int64_t>;

  /// \param op  what it is called with images in blocks; null where it has none
  void rewrite(Instruction instruction, const char* op) {
    if (op == nullptr) {
      program_.instructions.push_back(std::move(instruction));
      return;
    }
    instruction.op = operator_of(op);
    if (has_name(instruction, "rondo::batch_norm_relu_pool")) {
      rewrite_pooling(std::move(instruction));
      return;
    }
    if (has_name(instruction, "rondo::convolution")) {
      const bool is_in_blocks = images_.contains(id_at(instruction.results, 0));
      instruction.arguments.push_back(Argument::constant_of(is_in_blocks ? block_ : int64_t{0}));
    }
    if (has_name(instruction, "rondo::batch_norm_relu_pool_backward")) {
      SlotId& gradient = instruction.arguments[0].slots[0];
      gradient = images_.contains(gradient) ? gradient : copied_to_blocks(gradient, instruction);
    }
    program_.instructions.push_back(std::move(instruction));
  }

  void rewrite_pooling(Instruction pooling) {
    const SlotId largest = id_at(pooling.results, 0);
    put_in_blocks(program_.slots[static_cast<size_t>(id_at(pooling.results, 1))]);
    if (images_.contains(largest)) {
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
  ImagesInBlocks images_;
};

}  // namespace

StepProgram put_channels_in_blocks(StepProgram program) {
  const int64_t block = channel_block();
  const bool has_kernels = block > 0 && widest_instruction_set() == InstructionSet::Avx2;
  return !has_kernels ? program : Rewriter(std::move(program), block).run();
}

}  // namespace rondo
