#include <algorithm>
#include <optional>
#include <utility>

#include "core/vector_loop.h"
#include "tracing/passes/passes.h"
#include "tracing/program/arguments.h"
#include "tracing/program/storages.h"

namespace rondo {

namespace {

/// The instructions of one batch norm, ReLU and pooling, and of their gradients.
struct Fusion {
  size_t norm;
  size_t relu;
  size_t pool;
  size_t pool_backward;
  size_t relu_backward;
  size_t norm_backward;
};

using Indices = std::vector<size_t>;

// A list of one number stands for both dimensions.
bool are_numbers(const Argument& argument, int64_t value, bool may_be_empty = false) {
  const std::vector<int64_t> values = argument.constant.toIntVector();
  return (may_be_empty || !values.empty()) &&
         std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == value; });
}

/// Whether arguments from `first` on are (kernel, stride, padding, dilation, ceil) of windows of
/// two by two that lie side by side.
bool are_pairs(const Instruction& instruction, size_t first) {
  const std::vector<Argument>& arguments = instruction.arguments;
  return are_numbers(arguments[first], 2) &&
         are_numbers(arguments[first + 1], 2, /*may_be_empty=*/true) &&
         are_numbers(arguments[first + 2], 0) && are_numbers(arguments[first + 3], 1) &&
         is_constant(arguments[first + 4], 0);
}

bool is_tensor(const Argument& argument) {
  return argument.kind == Argument::Kind::Tensor && argument.slots[0] != kNoTensor;
}

bool are_tensors(const std::vector<Argument>& arguments, size_t first, size_t last) {
  return std::all_of(arguments.begin() + static_cast<std::ptrdiff_t>(first),
                     arguments.begin() + static_cast<std::ptrdiff_t>(last) + 1,
                     &is_tensor);
}

class Finder {
 public:
  explicit Finder(const StepProgram& program) : program_(program), facts_(program) {
    users_.resize(static_cast<size_t>(program.storages));
    for (size_t i = 0; i < program.instructions.size(); ++i) {
      const auto use = [&](SlotId slot) {
        Indices& users = users_[storage_of(program, slot)];
        if (users.empty() || users.back() != i) {
          users.push_back(i);
        }
      };
      for_each_slot(program.instructions[i].arguments, use);
      for_each_slot(program.instructions[i].results, use);
    }
  }

  std::vector<Fusion> all() const {
    std::vector<Fusion> fusions;
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      if (const auto fusion = at_norm(i)) {
        fusions.push_back(*fusion);
      }
    }
    return fusions;
  }

 private:
  const Instruction& at(size_t index) const { return program_.instructions[index]; }

  std::optional<Fusion> at_norm(size_t norm) const {
    if (!is_norm(norm)) {
      return std::nullopt;
    }
    // All that see what ReLU made, in the order in which they do; one in place sees the norm's.
    const Indices of_norm = users_of(at(norm).results[0]);
    if (of_norm.size() < 2) {
      return std::nullopt;
    }
    const size_t relu = of_norm[1];
    const bool is_in_place = has_name(at(relu), "aten::relu_");
    if (!is_in_place && (!has_name(at(relu), "aten::relu") || of_norm.size() != 2)) {
      return std::nullopt;
    }
    Indices of_relu = users_of(at(relu).results[0]);
    if (is_in_place) {
      of_relu.erase(of_relu.begin());
    }
    if (of_relu.size() != 4 || !has_name(at(of_relu[3]), "aten::threshold_backward")) {
      return std::nullopt;
    }
    const Indices of_gradient = users_of(at(of_relu[3]).results[0]);
    if (of_gradient.size() != 2) {
      return std::nullopt;
    }
    const Fusion fusion = {norm, relu, of_relu[1], of_relu[2], of_relu[3], of_gradient[1]};
    return fits(fusion) ? std::optional(fusion) : std::nullopt;
  }

  // (input, weight, bias, running_mean, running_var, training, momentum, eps)
  bool is_norm(size_t index) const {
    const Instruction& norm = at(index);
    return has_name(norm, "aten::native_batch_norm") && are_tensors(norm.arguments, 0, 4) &&
           is_constant(norm.arguments[5], 1) && has_planes(norm.arguments[0]);
  }

  // Others are better off with a kernel for each of the operators.
  bool has_planes(const Argument& tensor) const {
    constexpr int64_t kSmallestPlane = 8;  // elements: a vector
    const Slot& x = slot_of(program_, tensor.slots[0]);
    return is_plain_float(&x) && x.sizes.size() == 4 && numel(x) > 0 &&
           x.sizes[2] * x.sizes[3] >= kSmallestPlane;
  }

  bool fits(const Fusion& f) const {
    return pools(f) && spreads(f) && is_gradient_of_relu(f) && is_gradient_of_norm(f) &&
           !escapes(at(f.norm).results[0]) && !escapes(at(f.relu).results[0]) &&
           !escapes(at(f.pool).results[1]) && !escapes(at(f.pool_backward).results[0]) &&
           !escapes(at(f.relu_backward).results[0]) &&
           !facts_.is_written(storage_of(program_, at(f.pool_backward).arguments[0].slots[0]),
                              f.pool_backward,
                              f.norm_backward);
  }

  // (self, kernel, stride, padding, dilation, ceil)
  bool pools(const Fusion& f) const {
    return has_name(at(f.pool), "aten::max_pool2d_with_indices") && are_pairs(at(f.pool), 1) &&
           users_of(at(f.pool).results[1]) == Indices{f.pool, f.pool_backward};
  }

  // (gradient, self, kernel, stride, padding, dilation, ceil, indices)
  bool spreads(const Fusion& f) const {
    const Instruction& spread = at(f.pool_backward);
    return has_name(spread, "aten::max_pool2d_with_indices_backward") && are_pairs(spread, 2) &&
           is_plain_float(slot_at(program_, spread.arguments, 0)) &&
           shares_storage(spread.arguments[1], at(f.relu).results[0]) &&
           users_of(spread.results[0]) == Indices{f.pool_backward, f.relu_backward};
  }

  // (gradient, result, threshold)
  bool is_gradient_of_relu(const Fusion& f) const {
    const Instruction& backward = at(f.relu_backward);
    return has_name(backward, "aten::threshold_backward") &&
           is_constant(backward.arguments[2], 0) &&
           shares_storage(backward.arguments[0], at(f.pool_backward).results[0]) &&
           shares_storage(backward.arguments[1], at(f.relu).results[0]);
  }

  // (gradient, input, weight, running_mean, running_var, mean, inverse_deviation, train, eps, mask)
  bool is_gradient_of_norm(const Fusion& f) const {
    const Instruction& backward = at(f.norm_backward);
    const std::vector<Argument>& arguments = backward.arguments;
    return has_name(backward, "aten::native_batch_norm_backward") && is_tensor(arguments[2]) &&
           are_tensors(backward.results, 0, 2) && is_constant(arguments[7], 1) &&
           shares_storage(arguments[0], at(f.relu_backward).results[0]) &&
           arguments[1].slots == at(f.norm).arguments[0].slots &&
           arguments[5].slots == at(f.norm).results[1].slots &&
           arguments[6].slots == at(f.norm).results[2].slots;
  }

  const Indices& users_of(const Argument& tensor) const {
    return users_[storage_of(program_, tensor.slots[0])];
  }

  bool shares_storage(const Argument& a, const Argument& b) const {
    return is_tensor(a) && is_tensor(b) &&
           storage_of(program_, a.slots[0]) == storage_of(program_, b.slots[0]);
  }

  bool escapes(const Argument& tensor) const {
    return facts_.escapes[storage_of(program_, tensor.slots[0])];
  }

  const StepProgram& program_;
  StorageFacts facts_;
  std::vector<Indices> users_;  // by storage: instructions that name it, ascending
};

Instruction named(const char* op,
                  const Instruction& after,
                  std::vector<Argument> arguments,
                  std::vector<Result> results) {
  Instruction made{c10::Dispatcher::singleton().findSchemaOrThrow(op, ""),
                   std::move(arguments),
                   std::move(results),
                   after.writes};
  made.location = after.location;
  made.origin = after.origin;
  return made;
}

void fuse(StepProgram& program, const Fusion& f) {
  const Instruction norm = program.instructions[f.norm];
  const Instruction pool = program.instructions[f.pool];
  const Instruction spread = program.instructions[f.pool_backward];
  const Instruction backward = program.instructions[f.norm_backward];
  const Argument routes = pool.results[1];
  program.slots[static_cast<size_t>(routes.slots[0])].dtype = at::kByte;
  const std::vector<Argument>& of = norm.arguments;
  program.instructions[f.norm] = named("rondo::batch_norm_relu_pool",
                                       norm,
                                       {of[0], of[1], of[2], of[3], of[4], of[6], of[7]},
                                       {pool.results[0], routes, norm.results[1], norm.results[2]});
  const std::vector<Argument>& given = backward.arguments;
  program.instructions[f.norm_backward] =
      named("rondo::batch_norm_relu_pool_backward",
            backward,
            {spread.arguments[0], routes, given[1], given[2], given[5], given[6], given[8]},
            backward.results);
}

}  // namespace

StepProgram fuse_batch_norm_relu_pool(StepProgram program) {
  // Elsewhere there is no kernel for it, and each by itself is faster.
  if (widest_instruction_set() != InstructionSet::Avx2) {
    return program;
  }
  std::vector<bool> keep(program.instructions.size(), true);
  for (const Fusion& fusion : Finder(program).all()) {
    for (const size_t gone :
         {fusion.relu, fusion.pool, fusion.pool_backward, fusion.relu_backward}) {
      keep[gone] = false;
    }
    fuse(program, fusion);
  }
  keep_instructions(program, keep);
  return program;
}

}  // namespace rondo
