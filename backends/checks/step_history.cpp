#include "backends/checks/step_history.h"

#include <exception>

#include "core/error.h"

namespace rondo {

namespace {

std::vector<std::pair<std::string, int64_t>> non_finite_in(const CapturedState& state) {
  std::vector<std::pair<std::string, int64_t>> counts;
  for (const auto& [name, tensor] : state) {
    if (const int64_t count = count_non_finite(tensor); count > 0) {
      counts.emplace_back(name, count);
    }
  }
  return counts;
}

int64_t count_of(const std::vector<std::pair<std::string, int64_t>>& counts,
                 const std::string& name) {
  for (const auto& [known, count] : counts) {
    if (known == name) {
      return count;
    }
  }
  return 0;
}

int64_t bytes_of(const Batch& batch) {
  int64_t bytes = 0;
  for (const auto& item : batch.items()) {
    bytes += static_cast<int64_t>(item.second.nbytes());
  }
  return bytes;
}

}  // namespace

std::vector<char>& StepHistory::begin_step(const Batch& batch) {
  if (count_ == 0 || pace_.is_due(Clock::now() - taken_, cost_, count_, bytes_)) {
    take_snapshot();
  }
  if (count_ == steps_.size()) {
    steps_.emplace_back();
  }
  KeptStep& kept = steps_[count_++];
  kept.batch = batch;
  kept.answers.clear();
  bytes_ += bytes_of(batch);
  return kept.answers;
}

void StepHistory::end_step(std::shared_ptr<const StepProgram> program) {
  steps_[count_ - 1].program = std::move(program);
}

void StepHistory::forget() {
  for (size_t i = 0; i < count_; ++i) {
    steps_[i].batch = Batch();
    steps_[i].program.reset();
  }
  count_ = 0;
  bytes_ = 0;
}

void StepHistory::take_snapshot() {
  const Clock::time_point begin = Clock::now();
  const CapturedState state = state_();
  auto counts = non_finite_in(state);
  for (const auto& [name, count] : counts) {
    if (count_ > 0 && count > count_of(non_finite_, name)) {
      const std::string what = "\"" + name + "\" of the state is not finite any more\n";
      throw NonFiniteLossError(what + explain());
    }
  }
  if (snapshot_ == nullptr || !snapshot_->retake(state)) {
    snapshot_ = std::make_unique<StateSnapshot>(state, Batch());
  }
  non_finite_ = std::move(counts);
  forget();
  ++snapshots_;
  taken_ = Clock::now();
  cost_ = taken_ - begin;
}

std::string StepHistory::explain() {
  if (count_ == 0) {
    return "";
  }
  std::string text;
  snapshot_->swap();
  try {
    const std::optional<NanFinding> finding = find_first_bad(steps_, count_);
    text = finding ? to_text(*finding)
                   : "the last " + std::to_string(count_) +
                         " steps, run once more one operator after the other, gave no NaN: "
                         "something outside of the steps changed the state";
  } catch (const std::exception& error) {
    text = std::string("the last steps could not be run once more: ") + error.what();
  }
  snapshot_->swap();
  forget();
  return text;
}

}  // namespace rondo
