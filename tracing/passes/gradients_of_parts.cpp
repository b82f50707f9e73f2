#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "tracing/passes/passes.h"
#include "tracing/program/storages.h"

namespace rondo {

namespace {

/// A tensor that is zero but for parts of it along one dimension.
struct Parts {
  size_t dim = 0;
  std::vector<SlotId> gradients;
  std::vector<int64_t> starts;
  std::vector<int64_t> lengths;
  std::vector<size_t> made_by;  ///< instructions; the last one has the result
  size_t reads = 0;             ///< of the memory that has the result, by those
};

bool is_row_after_row(const Slot& slot) {
  int64_t stride = 1;
  for (size_t d = slot.sizes.size(); d-- > 0;) {
    if (slot.strides[d] != stride) {
      return false;
    }
    stride *= slot.sizes[d];
  }
  return true;
}

// As slicing has it: a start before the beginning is the beginning.
int64_t from_begin(int64_t index, int64_t size) {
  return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size);
}

// Complex numbers are left alone: LibTorch multiplies what it adds by one, which turns an infinite
// part into NaN.
bool is_plain(const Slot& whole) {
  return is_row_after_row(whole) && !c10::isComplexType(whole.dtype);
}

// Along a dimension, which `select` removed; none when the gradient is repeated over the part.
std::optional<int64_t> length_of_part(const Slot& gradient, const Slot& whole, size_t dim) {
  std::vector<int64_t> others = whole.sizes;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(dim));
  if (gradient.sizes == others) {
    return 1;
  }
  std::vector<int64_t> sizes = whole.sizes;
  sizes[dim] = dim < gradient.sizes.size() ? gradient.sizes[dim] : 0;
  return gradient.sizes == sizes ? std::optional(sizes[dim]) : std::nullopt;
}

/// Of select_backward(gradient, sizes, dim, index) and slice_backward(gradient, sizes, dim, start,
/// end, step = 1).
std::optional<Parts> part_of(const StepProgram& program, size_t index) {
  const Instruction& instruction = program.instructions[index];
  const bool is_slice = has_name(instruction, "aten::slice_backward");
  if (!is_slice && !has_name(instruction, "aten::select_backward")) {
    return std::nullopt;
  }
  const auto number = [&](size_t i) { return instruction.arguments[i].constant.toInt(); };
  const Slot& whole = slot_of(program, instruction.results[0].slots[0]);
  if (!is_plain(whole) || (is_slice && number(5) != 1)) {
    return std::nullopt;
  }
  const SlotId gradient = instruction.arguments[0].slots[0];
  Parts parts;
  parts.dim = static_cast<size_t>(
      number(2) < 0 ? number(2) + static_cast<int64_t>(whole.sizes.size()) : number(2));
  const auto length = length_of_part(slot_of(program, gradient), whole, parts.dim);
  if (!length) {
    return std::nullopt;
  }
  parts.gradients = {gradient};
  parts.starts = {from_begin(number(3), whole.sizes[parts.dim])};
  parts.lengths = {*length};
  parts.made_by = {index};
  return parts;
}

bool are_apart(const Parts& a, const Parts& b) {
  for (size_t i = 0; i < a.starts.size(); ++i) {
    for (size_t j = 0; j < b.starts.size(); ++j) {
      if (a.starts[i] < b.starts[j] + b.lengths[j] && b.starts[j] < a.starts[i] + a.lengths[i]) {
        return false;
      }
    }
  }
  return true;
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// Follows sums of tensors that are zero but for parts of them.
class SumsOfParts {
 public:
  explicit SumsOfParts(const StepProgram& program) : program_(program), facts_(program) {
    readers_.resize(static_cast<size_t>(program.storages));
    for (size_t i = 0; i < program.instructions.size(); ++i) {
      for_each_slot(program.instructions[i].arguments, [&](SlotId slot) {
        std::vector<size_t>& readers = readers_[storage_of(program, slot)];
        if (readers.empty() || readers.back() != i) {
          readers.push_back(i);
        }
      });
    }
    for (size_t i = 0; i < program.instructions.size(); ++i) {
      if (auto part = part_of(program, i)) {
        sums_[program.instructions[i].results[0].slots[0]] = std::move(*part);
      } else {
        add(i);
      }
    }
  }

  /// Those of two parts and more, whose gradients are still what they were when the sum is done.
  std::vector<Parts> complete() const {
    std::vector<Parts> all;
    for (const auto& [slot, parts] : sums_) {
      if (parts.gradients.size() > 1 && are_unwritten(parts)) {
        all.push_back(parts);
      }
    }
    return all;
  }

 private:
  void add(size_t index) {
    const Instruction& instruction = program_.instructions[index];
    const bool is_in_place = has_name(instruction, "aten::add_.Tensor");
    if ((!is_in_place && !has_name(instruction, "aten::add.Tensor")) ||
        instruction.arguments[1].kind != Argument::Kind::Tensor ||
        !instruction.arguments[2].constant.toScalar().equal(1)) {
      return;
    }
    const auto first = sums_.find(instruction.arguments[0].slots[0]);
    const auto second = sums_.find(instruction.arguments[1].slots[0]);
    if (first == sums_.end() || second == sums_.end() || first == second ||
        !is_free(*first, index, is_in_place) || !is_free(*second, index, false) ||
        !fit(*first, *second)) {
      return;
    }
    Parts sum = std::move(first->second);
    append(sum.gradients, second->second.gradients);
    append(sum.starts, second->second.starts);
    append(sum.lengths, second->second.lengths);
    append(sum.made_by, second->second.made_by);
    sum.made_by.push_back(index);
    sum.reads = is_in_place ? sum.reads + 1 : 0;
    sums_.erase(first);
    sums_.erase(second);
    sums_[instruction.results[0].slots[0]] = std::move(sum);
  }

  using Sum = std::pair<const SlotId, Parts>;

  /// Whether nothing but the instruction sees what was summed up so far.
  bool is_free(const Sum& sum, size_t index, bool goes_on) const {
    const size_t storage = storage_of(program_, sum.first);
    const std::vector<size_t>& readers = readers_[storage];
    const size_t reads = sum.second.reads;
    const bool is_next = reads < readers.size() && readers[reads] == index;
    const bool is_last = is_next && reads + 1 == readers.size();
    return goes_on ? is_next : is_last && !facts_.escapes[storage];
  }

  bool fit(const Sum& a, const Sum& b) const {
    const Slot& first = slot_of(program_, a.first);
    const Slot& second = slot_of(program_, b.first);
    return first.sizes == second.sizes && first.dtype == second.dtype &&
           a.second.dim == b.second.dim && are_apart(a.second, b.second);
  }

  bool are_unwritten(const Parts& parts) const {
    const size_t first = *std::min_element(parts.made_by.begin(), parts.made_by.end());
    return std::none_of(parts.gradients.begin(), parts.gradients.end(), [&](SlotId gradient) {
      return facts_.is_written(storage_of(program_, gradient), first, parts.made_by.back());
    });
  }

  const StepProgram& program_;
  StorageFacts facts_;
  std::vector<std::vector<size_t>> readers_;  // by storage: instructions with it as argument
  std::map<SlotId, Parts> sums_;              // by the tensor that holds one so far
};

Argument ints(const std::vector<int64_t>& values) {
  return Argument::constant_of(c10::IValue(values));
}

Instruction written_once(const StepProgram& program, const Parts& parts) {
  const Instruction& last = program.instructions[parts.made_by.back()];
  const Slot& whole = slot_of(program, last.results[0].slots[0]);
  Argument gradients;
  gradients.kind = Argument::Kind::TensorList;
  gradients.slots = parts.gradients;
  Instruction made{c10::Dispatcher::singleton().findSchemaOrThrow("rondo::gradients_of_parts", ""),
                   {std::move(gradients),
                    ints(whole.sizes),
                    Argument::constant_of(static_cast<int64_t>(parts.dim)),
                    ints(parts.starts)},
                   last.results,
                   /*writes=*/{}};
  made.location = last.location;
  made.origin = last.origin;
  return made;
}

}  // namespace

StepProgram write_gradients_of_parts_once(StepProgram program) {
  std::vector<bool> keep(program.instructions.size(), true);
  for (const Parts& parts : SumsOfParts(program).complete()) {
    for (const size_t index : parts.made_by) {
      keep[index] = index == parts.made_by.back();
    }
    program.instructions[parts.made_by.back()] = written_once(program, parts);
  }
  keep_instructions(program, keep);
  return program;
}

}  // namespace rondo
