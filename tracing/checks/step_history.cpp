#include "tracing/checks/step_history.h"

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

std::string not_finite(const std::string& part) {
  return "\"" + part + "\" of the state is not finite any more\n";
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
  unrecorded_ += program == nullptr ? 1 : 0;
  steps_[count_ - 1].program = std::move(program);
}

void StepHistory::forget() {
  if (count_ == 0) {
    return;
  }
  if (const std::string part = spoiled_part(non_finite_in(state_())); !part.empty()) {
    if (const std::optional<std::string> why = blame()) {
      throw NonFiniteLossError(not_finite(part) + *why);
    }
  }
  let_go();
}

void StepHistory::check() {
  if (count_ > 0) {
    require_sound(non_finite_in(state_()));
    let_go();
  }
}

void StepHistory::take_snapshot() {
  const Clock::time_point begin = Clock::now();
  const CapturedState state = state_();
  Counts counts = non_finite_in(state);
  if (count_ > 0) {
    require_sound(counts);
  }
  if (snapshot_ == nullptr || !snapshot_->retake(state)) {
    snapshot_ = std::make_unique<StateSnapshot>(state, Batch());
  }
  non_finite_ = std::move(counts);
  let_go();
  ++snapshots_;
  taken_ = Clock::now();
  cost_ = taken_ - begin;
}

// Name of what holds more bad numbers than in the copy; "" when nothing does.
std::string StepHistory::spoiled_part(const Counts& now) const {
  for (const auto& [name, count] : now) {
    if (count > count_of(non_finite_, name)) {
      return name;
    }
  }
  return "";
}

void StepHistory::require_sound(const Counts& now) {
  if (const std::string part = spoiled_part(now); !part.empty()) {
    throw NonFiniteLossError(not_finite(part) + explain());
  }
}

std::string StepHistory::explain() {
  const size_t count = count_;
  if (count == 0) {
    return "";
  }
  const size_t unrecorded = unrecorded_;
  if (const std::optional<std::string> why = blame()) {
    return *why;
  }
  if (unrecorded > 0) {
    return "no operator can be named: " + std::to_string(unrecorded) + " of the last " +
           std::to_string(count) +
           " steps ran as they are written, because they cannot be recorded (the run's warning "
           "says "
           "why), and only recorded steps can be run once more";
  }
  return "the last " + std::to_string(count) +
         " steps, run once more one operator after the other, gave no NaN: something outside of "
         "the steps changed the state";
}

// What is told of the kept steps, run once more; nothing when they gave no NaN.
std::optional<std::string> StepHistory::blame() {
  std::optional<std::string> text;
  snapshot_->swap();
  try {
    if (const std::optional<NanFinding> finding = find_first_bad(steps_, count_)) {
      text = to_text(*finding);
    }
  } catch (const std::exception& error) {
    text = std::string("the last steps could not be run once more: ") + error.what();
  }
  snapshot_->swap();
  let_go();
  return text;
}

void StepHistory::let_go() {
  for (size_t i = 0; i < count_; ++i) {
    steps_[i].batch = Batch();
    steps_[i].program.reset();
  }
  count_ = 0;
  unrecorded_ = 0;
  bytes_ = 0;
}

}  // namespace rondo
