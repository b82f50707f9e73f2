#include "callbacks/builtin/speed_monitor.h"

#include "callbacks/builtin/internal/wall_time.h"
#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

SpeedMonitor::SpeedMonitor(const Options& options)
    : window_(static_cast<size_t>(options.window)),
      unit_seconds_(detail::seconds_in(options.time_unit, "SpeedMonitor.time_unit")) {
  detail::require(options.window >= 1, "SpeedMonitor.window", ">= 1", options.window);
}

void SpeedMonitor::on_fit_start(Trainer&, const DataLoader&, const Loaders&, Loop&) {
  points_.clear();
}

void SpeedMonitor::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  const Timestamp& now = trainer.state().timestamp;
  points_.push_back({now.batch, now.sample, now.token, now.total_seconds});
  if (points_.size() > window_ + 1) {
    points_.pop_front();
  }
  if (!trainer.state().position.is_last) {
    return;
  }
  const double train = now.total_seconds / unit_seconds_;
  const double validation = validation_seconds_ / unit_seconds_;
  Metrics values{
      {"time/train", train}, {"time/val", validation}, {"time/total", train + validation}};
  const Point& first = points_.front();
  const Point& last = points_.back();
  if (const double seconds = last.seconds - first.seconds;
      points_.size() == window_ + 1 && seconds > 0.0) {
    const auto set_rate = [&](const char* name, int64_t count) {
      values.set(name, static_cast<double>(count) / seconds);
    };
    set_rate("throughput/batches_per_sec", last.batches - first.batches);
    set_rate("throughput/samples_per_sec", last.samples - first.samples);
    if (last.tokens > 0) {
      set_rate("throughput/tokens_per_sec", last.tokens - first.tokens);
    }
  }
  trainer.log_metrics(values);
}

void SpeedMonitor::on_validate_start(Trainer&, Model&, const DataLoader&, Loop&) {
  validation_start_ = Clock::now();
}

void SpeedMonitor::on_validate_end(Trainer&, Model&, Loop&) {
  validation_seconds_ += std::chrono::duration<double>(Clock::now() - validation_start_).count();
}

StateDict SpeedMonitor::save_state() const {
  return {{"validation_seconds", validation_seconds_}};
}

void SpeedMonitor::load_state(const StateDict& state) {
  validation_seconds_ = state.at("validation_seconds").as_double();
}

void register_speed_monitor(Registry<Callback>& registry) {
  using Options = SpeedMonitor::Options;
  registry.add<SpeedMonitor>("SpeedMonitor", "Logs how fast training is, and the time spent.")
      .key("window", &Options::window, at_least(1), "batches over which speed is measured")
      .key("time_unit",
           &Options::time_unit,
           one_of({"seconds", "minutes", "hours", "days"}),
           "unit of time/train, time/val and time/total");
}

}  // namespace rondo
