#include "tracing/passes/images_in_blocks.h"

#include <algorithm>
#include <utility>

#include "tracing/onednn/recorded_convolution.h"
#include "tracing/program/arguments.h"
#include "tracing/program/storages.h"

namespace rondo {

namespace {

using Places = std::vector<size_t>;

/// Images of an instruction that lie in one way.
struct Group {
  Places arguments;
  Places results;
};

/// An operator that takes images in blocks of channels as well.
struct Taker {
  const char* op;
  const char* in_blocks;  ///< what it is called then
  std::vector<Group> groups;
  bool (*is_fit)(const StepProgram&, const Instruction&) = nullptr;  ///< null: all are
  bool is_led = false;  ///< the second group lies in blocks only where the first one does
};

bool are_there(const std::vector<Argument>& tensors, const Places& places) {
  return std::all_of(places.begin(), places.end(), [&](size_t i) { return !is_none(tensors[i]); });
}

bool is_fit_convolution(const StepProgram& program, const Instruction& instruction) {
  const auto shape = shape_of_convolution(program, instruction);
  return shape && agrees_with_libtorch(*shape);
}

bool is_fit_convolution_backward(const StepProgram& program, const Instruction& instruction) {
  const auto shape = shape_of_convolution_backward(program, instruction);
  return shape && agrees_with_libtorch(*shape);
}

bool is_fit_batch_norm(const StepProgram&, const Instruction& instruction) {
  return is_constant(instruction.arguments[5], 1) && are_there(instruction.arguments, {1, 2, 3, 4});
}

bool is_fit_batch_norm_backward(const StepProgram& program, const Instruction& instruction) {
  constexpr int64_t kSmallestPlane = 8;  // elements: a vector
  const Slot* const x = slot_at(program, instruction.arguments, 1);
  return is_constant(instruction.arguments[7], 1) && are_there(instruction.arguments, {2, 5, 6}) &&
         are_there(instruction.results, {0, 1, 2}) && x != nullptr && x->sizes.size() == 4 &&
         x->sizes[2] * x->sizes[3] >= kSmallestPlane;
}

const std::vector<Taker>& takers() {
  static const char* const kPool = "rondo::batch_norm_relu_pool";
  static const char* const kPoolBackward = "rondo::batch_norm_relu_pool_backward";
  const Group one = {{0}, {0}};
  const Group two = {{0, 1}, {0}};
  static const std::vector<Taker> all = {
      {"aten::convolution", "rondo::convolution", {{{0}, {}}, {{}, {0}}}, &is_fit_convolution},
      {"aten::convolution_backward",
       "rondo::convolution_backward",
       {{{0}, {}}, {{1}, {0}}},
       &is_fit_convolution_backward},
      {"aten::native_batch_norm", "rondo::batch_norm", {one}, &is_fit_batch_norm},
      {"aten::native_batch_norm_backward",
       "rondo::batch_norm_backward",
       {two},
       &is_fit_batch_norm_backward},
      {kPool, kPool, {{{0}, {}}, {{}, {0}}}, nullptr, true},
      {kPoolBackward, kPoolBackward, {{{2}, {0}}, {{0}, {}}}, nullptr, true},
      {"aten::relu", "aten::relu", {one}},
      {"aten::relu_", "aten::relu_", {one}},
      {"aten::threshold_backward", "aten::threshold_backward", {two}},
      {"aten::add.Tensor", "aten::add.Tensor", {two}},
      {"aten::add_.Tensor", "aten::add_.Tensor", {two}},
  };
  return all;
}

/// Null where an instruction takes no images in blocks.
const Taker* taker_of(const StepProgram& program, const Instruction& instruction) {
  const auto found = std::find_if(takers().begin(), takers().end(), [&](const Taker& taker) {
    return has_name(instruction, taker.op);
  });
  const bool is_fit =
      found != takers().end() && (found->is_fit == nullptr || found->is_fit(program, instruction));
  return is_fit ? &*found : nullptr;
}

SlotId slot_or_none(const std::vector<Argument>& arguments, size_t i) {
  return arguments[i].kind == Argument::Kind::Tensor ? arguments[i].slots[0] : kNoTensor;
}

/// A result that is not asked for is none of them.
std::vector<SlotId> slots_of(const Instruction& instruction, const Group& group) {
  std::vector<SlotId> slots;
  for (const size_t i : group.arguments) {
    slots.push_back(slot_or_none(instruction.arguments, i));
  }
  for (const size_t i : group.results) {
    if (const SlotId slot = slot_or_none(instruction.results, i); slot != kNoTensor) {
      slots.push_back(slot);
    }
  }
  return slots;
}

/// Whether its strides are those of rows, even where a size of 1 leaves them open: operators take
/// the order of their results from them.
bool has_strides_of_rows(const Slot& image) {
  int64_t stride = 1;
  for (size_t d = image.sizes.size(); d-- > 0;) {
    if (image.strides[d] != stride) {
      return false;
    }
    stride *= image.sizes[d];
  }
  return true;
}

class Choice {
 public:
  Choice(const StepProgram& program, int64_t block) : program_(program) {
    for (const Instruction& instruction : program_.instructions) {
      takers_.push_back(taker_of(program_, instruction));
    }
    find_candidates(block);
    while (drop_what_does_not_fit()) {
    }
    name_operators();
  }

  ImagesInBlocks take() { return std::move(images_); }

 private:
  void find_candidates(int64_t block) {
    const StorageFacts facts(program_);
    const std::vector<bool> is_used = used_slots(program_);
    std::vector<int> slots_of_storage(static_cast<size_t>(program_.storages), 0);
    for (size_t i = 0; i < program_.slots.size(); ++i) {
      slots_of_storage[static_cast<size_t>(program_.slots[i].storage)] += is_used[i] ? 1 : 0;
    }
    for (const Slot& slot : program_.slots) {
      const auto storage = static_cast<size_t>(slot.storage);
      images_.is_in.push_back(
          slot.kind == SlotKind::Produced && slot.dtype == at::kFloat && slot.sizes.size() == 4 &&
          slot.offset == 0 && has_strides_of_rows(slot) && numel(slot) > 0 &&
          slot.sizes[1] % block == 0 && slots_of_storage[storage] == 1 && !facts.escapes[storage]);
    }
    for (size_t i = 0; i < takers_.size(); ++i) {
      drop_others(program_.instructions[i], takers_[i]);
    }
  }

  // A tensor may be an image in one place and something else in another.
  void drop_others(const Instruction& instruction, const Taker* taker) {
    Group images;
    if (taker != nullptr) {
      for (const auto& [arguments, results] : taker->groups) {
        images.arguments.insert(images.arguments.end(), arguments.begin(), arguments.end());
        images.results.insert(images.results.end(), results.begin(), results.end());
      }
    }
    drop_all_but(images.arguments, instruction.arguments);
    drop_all_but(images.results, instruction.results);
  }

  void drop_all_but(const Places& images, const std::vector<Argument>& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (std::find(images.begin(), images.end(), i) == images.end()) {
        drop(tensors[i].slots);
      }
    }
  }

  bool drop_what_does_not_fit() {
    bool has_dropped = false;
    for (size_t i = 0; i < takers_.size(); ++i) {
      if (takers_[i] != nullptr) {
        has_dropped = drop_of(program_.instructions[i], *takers_[i]) || has_dropped;
      }
    }
    return has_dropped;
  }

  bool drop_of(const Instruction& instruction, const Taker& taker) {
    bool has_dropped = false;
    bool are_in = true;
    for (const Group& group : taker.groups) {
      const std::vector<SlotId> slots = slots_of(instruction, group);
      are_in = (are_in || !taker.is_led) && are_all_in(slots);
      has_dropped = (!are_in && drop(slots)) || has_dropped;
    }
    return has_dropped;
  }

  bool are_all_in(const std::vector<SlotId>& slots) const {
    return std::all_of(
        slots.begin(), slots.end(), [this](SlotId slot) { return images_.contains(slot); });
  }

  /// \return whether any of them was in
  bool drop(const std::vector<SlotId>& slots) {
    bool has_dropped = false;
    for (const SlotId slot : slots) {
      if (images_.contains(slot)) {
        images_.is_in[static_cast<size_t>(slot)] = false;
        has_dropped = true;
      }
    }
    return has_dropped;
  }

  void name_operators() {
    for (size_t i = 0; i < takers_.size(); ++i) {
      const bool takes_some =
          takers_[i] != nullptr && has_some(program_.instructions[i], *takers_[i]);
      images_.operators.push_back(takes_some ? takers_[i]->in_blocks : nullptr);
    }
  }

  bool has_some(const Instruction& instruction, const Taker& taker) const {
    return std::any_of(taker.groups.begin(), taker.groups.end(), [&](const Group& group) {
      const std::vector<SlotId> slots = slots_of(instruction, group);
      return std::any_of(
          slots.begin(), slots.end(), [this](SlotId slot) { return images_.contains(slot); });
    });
  }

  const StepProgram& program_;
  std::vector<const Taker*> takers_;  // by instruction
  ImagesInBlocks images_;
};

}  // namespace

ImagesInBlocks images_in_blocks(const StepProgram& program, int64_t block) {
  return Choice(program, block).take();
}

}  // namespace rondo
