#include "loggers/live_progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "callbacks/core/checkpoint_callback.h"
#include "callbacks/core/metric_direction.h"
#include "callbacks/core/run_plan.h"
#include "core/glob.h"
#include "core/process_memory.h"
#include "core/standard_error.h"
#include "core/terminal.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

using std::chrono::duration;
using std::chrono::milliseconds;

constexpr milliseconds kBetweenDrawings(100);
constexpr double kSpeedOver = 0.5;  // seconds
constexpr size_t kMostMetrics = 4;
constexpr int kUsualColumns = 80;

}  // namespace

bool LiveProgress::is_possible() {
  const char* const kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && kind != nullptr && std::strcmp(kind, "dumb") != 0;
}

LiveProgress::LiveProgress(const Trainer& trainer, std::vector<std::string> globs)
    : trainer_(trainer), globs_(std::move(globs)) {
  if (const RunPlan* plan = trainer.state().plan; plan != nullptr && plan->length().total) {
    const Time& total = *plan->length().total;
    facts_.updates = total.unit() == TimeUnit::Update ? std::optional(total.count()) : std::nullopt;
  }
}

LiveProgress::~LiveProgress() {
  show_below_stderr({});
}

void LiveProgress::start_training() {
  const State& state = trainer_.state();
  stage_begin_ = state.global_step();
  stage_updates_ =
      state.plan == nullptr ? std::nullopt : state.plan->updates_of_stage(state.timestamp);
  start_measuring(Clock::now());
}

void LiveProgress::start_measuring(Clock::time_point now) {
  since_ = now;
  updates_before_ = trainer_.state().global_step();
  samples_ = 0;
}

void LiveProgress::add_batch(int64_t samples) {
  const Clock::time_point now = Clock::now();
  if (trainer_.state().is_training) {
    samples_ += samples;
    measure_speed(now);
  }
  if (now - drawn_ >= kBetweenDrawings) {
    drawn_ = now;
    draw();
  }
}

void LiveProgress::measure_speed(Clock::time_point now) {
  const double seconds = duration<double>(now - since_).count();
  if (seconds < kSpeedOver) {
    return;
  }
  const int64_t update = trainer_.state().global_step();
  facts_.updates_per_s = static_cast<double>(update - updates_before_) / seconds;
  facts_.samples_per_s = static_cast<double>(samples_) / seconds;
  start_measuring(now);
}

void LiveProgress::take(const Metrics& values, int64_t update) {
  for (const Metrics::Item& item : values.items()) {
    if (const std::optional<double> value = values.number(item.first)) {
      take(item.first, *value, update);
    }
  }
}

void LiveProgress::take(const std::string& metric, double value, int64_t update) {
  const auto [direction, is_new] = directions_.try_emplace(metric);
  if (is_new) {
    direction->second = better_of(trainer_, metric);
  }
  const std::optional<Better>& better = direction->second;
  auto known = std::find_if(facts_.values.begin(), facts_.values.end(), [&](const auto& entry) {
    return entry.name == metric;
  });
  if (known == facts_.values.end()) {
    if (!shows(metric, better.has_value())) {
      return;
    }
    known = facts_.values.insert(known, {metric, value, std::nullopt, 0});
  }
  known->newest = value;
  if (!better) {
    return;
  }
  const bool is_best =
      !known->best || (*better == Better::Lower ? value < *known->best : value > *known->best);
  if (!std::isnan(value) && is_best) {
    known->best = value;
    known->best_update = update;
  }
}

/// Unless globs say so, not learning rates and the like.
bool LiveProgress::shows(const std::string& metric, bool has_direction) const {
  if (globs_.empty()) {
    return has_direction && facts_.values.size() < kMostMetrics;
  }
  return matches_any(globs_, metric);
}

void LiveProgress::draw() {
  const State& state = trainer_.state();
  const DataExecutor* const executor = state.executor;
  facts_.update = state.global_step();
  facts_.epoch = state.timestamp.epoch;
  facts_.share = state.plan == nullptr ? 0.0 : state.plan->elapsed_share(state.timestamp);
  facts_.seconds_left =
      facts_.share > 0.0
          ? std::optional(state.timestamp.total_seconds * (1.0 - facts_.share) / facts_.share)
          : std::nullopt;
  facts_.pass = state.is_training ? "train" : trainer_.metric_log().scope_path();
  if (!facts_.pass.empty() && facts_.pass.back() == '/') {
    facts_.pass.pop_back();
  }
  if (state.is_training) {
    facts_.done = state.global_step() - stage_begin_;
    facts_.all = stage_updates_;
  } else if (executor != nullptr) {
    facts_.done = executor->iteration() + 1;
    facts_.all = executor->num_batches();
  }
  facts_.memory = resident_bytes();
  facts_.saved = trainer_.slot<CheckpointCallback>().saved_update();
  if (*facts_.saved < 0) {
    facts_.saved.reset();
  }
  const int columns = terminal_columns(STDERR_FILENO).value_or(kUsualColumns);
  show_below_stderr(progress_lines(facts_, columns - 1));
}

}  // namespace rondo
