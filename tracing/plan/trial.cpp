#include "tracing/plan/trial.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <exception>
#include <limits>

#include "backends/generator_state.h"
#include "core/state_dict.h"
#include "core/torch_compat.h"
#include "tracing/plan/put_back.h"
#include "tracing/program/storages.h"

namespace rondo {

namespace {

std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& tensor : tensors) {
    all.push_back(tensor.clone());
  }
  return all;
}

bool is_close(const at::Tensor& got, const at::Tensor& expected, int ulps) {
  if (equal_bytes(got, expected)) {
    return true;
  }
  if (ulps == 0 || !expected.is_floating_point()) {
    return false;
  }
  const double epsilon = expected.scalar_type() == at::kDouble
                             ? std::numeric_limits<double>::epsilon()
                             : std::numeric_limits<float>::epsilon();
  const double largest = expected.abs().max().item<double>();
  return got.sub(expected).abs().max().item<double>() <= ulps * epsilon * largest;
}

// The operator throws and warns for itself.
bool run_quietly(Kernel& kernel) {
  const compat::NoWarnings no_warnings;
  try {
    kernel.run();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

/// The random numbers of an operator that draws some, to be drawn a second time.
class Draws {
 public:
  explicit Draws(bool are_some) : before_(are_some ? generator_state() : at::Tensor()) {}

  void rewind() {
    if (before_.defined()) {
      after_ = generator_state();
      set_generator_state(before_);
    }
  }

  /// Whether as many were drawn before `rewind` as after it.
  bool are_same() const { return !before_.defined() || equal_bytes(after_, generator_state()); }

 private:
  at::Tensor before_;
  at::Tensor after_;
};

}  // namespace

Trial::Trial(const Instruction& instruction, const PlanMemory& memory, int ulps)
    : given_(instruction, memory),
      is_pure_(is_pure(instruction)),
      draws_random_(instruction.draws_random),
      ulps_(ulps) {
  std::vector<SlotId> seen;  // an operator in place returns what it writes
  const auto add = [&](SlotId slot, int copies_at_once) {
    if (slot != kNoTensor && std::find(seen.begin(), seen.end(), slot) == seen.end()) {
      seen.push_back(slot);
      written_.push_back(memory.tensor(slot));
      is_outside_.push_back(is_outside(memory.home(slot)));
      bytes_ += copies_at_once * static_cast<int64_t>(written_.back().nbytes());
    }
  };
  // Before, after, and what an operator that returns nothing computes before it writes, or what one
  // that writes to a tensor of its own does.
  for (const SlotId slot : instruction.writes) {
    add(slot, instruction.results.empty() || takes_out(instruction.op) ? 3 : 2);
  }
  // What the operator returns, and two copies of it where all is copied.
  for_each_slot(instruction.results, [&](SlotId slot) { add(slot, is_pure_ ? 1 : 3); });
  if (instruction.results.empty()) {
    in_place_ = call_in_place(instruction, memory);
  } else {
    copying_ = std::make_unique<CopyingCall>(instruction, memory);
  }
}

bool Trial::passes(Kernel& kernel, Effect effect) {
  return is_pure_ ? passes_pure(kernel) : passes_writing(kernel, effect);
}

bool Trial::runs_well(Kernel& kernel) const {
  const FixedStorages fixed(written_);
  const bool is_done = run_quietly(kernel);
  return given_.put_back() && is_done;
}

bool Trial::passes_pure(Kernel& kernel) {
  const std::vector<at::Tensor> expected = copying_->call();
  const std::vector<at::Tensor>& results = copying_->results();
  // A file may plan results of any size.
  bool agree = std::equal(results.begin(),
                          results.end(),
                          expected.begin(),
                          expected.end(),
                          [](const at::Tensor& result, const at::Tensor& of_operator) {
                            return !result.defined() || result.sizes() == of_operator.sizes();
                          });
  agree = agree && runs_well(kernel);
  for (size_t i = 0; agree && i < results.size(); ++i) {
    agree = !results[i].defined() || is_close(results[i], expected[i], ulps_);
  }
  if (!agree) {
    copying_->put(expected);
  }
  return agree;
}

// Undoes what the kernel wrote and lets the operator do the same.
bool Trial::passes_writing(Kernel& kernel, Effect effect) {
  const std::vector<at::Tensor> before = copies(written_);
  PutBack put_back;
  for (size_t i = 0; effect == Effect::Undone && i < written_.size(); ++i) {
    if (is_outside_[i]) {
      put_back.add(written_[i], before[i]);
    }
  }
  Draws draws(draws_random_);
  bool agree = runs_well(kernel);
  draws.rewind();
  const std::vector<at::Tensor> got = copies(written_);
  for (size_t i = 0; i < written_.size(); ++i) {
    written_[i].copy_(before[i]);
  }
  Kernel& recorded = copying_ != nullptr ? *copying_ : *in_place_;
  recorded.run();
  agree = agree && draws.are_same();
  for (size_t i = 0; agree && i < written_.size(); ++i) {
    agree = is_close(got[i], written_[i], ulps_);
  }
  return agree;
}

std::unique_ptr<Kernel> Trial::take_operator() {
  if (copying_ != nullptr) {
    return std::move(copying_);
  }
  return std::move(in_place_);
}

}  // namespace rondo
