#include "loggers/progress_logger.h"

#include <fmt/format.h>

#include "callbacks/core/run_plan.h"
#include "core/registry.h"
#include "core/standard_error.h"
#include "loggers/register.h"
#include "record/confusion.h"
#include "record/run_charts.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// Two decimals, or three significant digits below one.
std::string rate_text(double rate) {
  return rate >= 1.0 ? fmt::format("{:.2f}", rate) : fmt::format("{:.3g}", rate);
}

void print(const std::string& line) {
  write_to_stderr(line + "\n");
}

double seconds_between(std::chrono::steady_clock::time_point from,
                       std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

void ProgressLogger::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) {
  live_ = LiveProgress::is_possible() ? std::make_unique<LiveProgress>(trainer, metrics_) : nullptr;
  total_samples_ = 0;
  train_seconds_ = 0.0;
}

void ProgressLogger::on_train_start(Trainer& trainer, Model&, const DataLoader&, Loop&, int64_t) {
  samples_ = 0;
  run_samples_ = trainer.state().timestamp.sample;
  since_ = Clock::now();
  if (live_) {
    live_->start_training();
  }
}

void ProgressLogger::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  // Of all ranks; the batch has those of one.
  const int64_t samples = trainer.state().timestamp.sample - run_samples_;
  run_samples_ += samples;
  samples_ += samples;
  if (live_) {
    live_->add_batch(samples);
  }
  if (trainer.state().position.is_last && trainer.is_log_step() &&
      trainer.metric_log().is_due(filter())) {
    trainer.defer({}, [this, &trainer](const std::vector<at::Tensor>&) { print_train(trainer); });
  }
}

void ProgressLogger::print_train(Trainer& trainer) {
  const State& state = trainer.state();
  const Clock::time_point now = Clock::now();
  const double seconds = seconds_between(since_, now);
  total_samples_ += samples_;
  train_seconds_ += seconds;
  std::string line = fmt::format(
      "| Train Device={}, Step={}", trainer.options().backend.device, state.global_step());
  if (loss_) {
    line += fmt::format(", Loss={:.5f}", *loss_);
  }
  line += fmt::format(", Rate={} samples/sec, GlobalRate={} samples/sec",
                      rate_text(static_cast<double>(samples_) / seconds),
                      rate_text(static_cast<double>(total_samples_) / train_seconds_));
  if (const double share = state.plan->elapsed_share(state.timestamp); share > 0.0) {
    line +=
        ", TimeRemaining=" + duration_text(state.timestamp.total_seconds * (1.0 - share) / share);
  }
  if (!live_) {
    print(line);
  }
  samples_ = 0;
  since_ = now;
}

void ProgressLogger::on_validate_start(Trainer&, Model&, const DataLoader&, Loop&) {
  samples_ = 0;
  since_ = Clock::now();
}

void ProgressLogger::on_validate_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch& batch, int64_t batch_idx) {
  samples_ += batch.size();
  if (live_) {
    live_->add_batch(batch.size());
  } else if (trainer.is_log_step()) {
    const int64_t number = batch_idx + 1;
    trainer.defer({}, [this, &trainer, number](const std::vector<at::Tensor>&) {
      const double rate = static_cast<double>(samples_) / seconds_between(since_, Clock::now());
      print(fmt::format("| Eval Device={}, GlobalStep={}, Batch={}{}, Rate={} samples/sec",
                        trainer.options().backend.device,
                        trainer.state().global_step(),
                        number,
                        loss_ ? fmt::format(", Loss={:.5f}", *loss_) : std::string(),
                        rate_text(rate)));
    });
  }
}

void ProgressLogger::on_validate_end(Trainer& trainer, Model&, Loop&) {
  std::string line = "| " + trainer.metric_log().scope_path();
  line.back() = ':';
  if (samples_ == 0 || !trainer.is_log_step()) {  // older values may be there
    print(line + " no result");
    return;
  }
  for (const Metrics::Item& item : trainer.state().last_metrics.items()) {
    const std::string scope = trainer.metric_log().scope_path();
    if (item.first.compare(0, scope.size(), scope) == 0 &&
        item.first.find("val_loss") == std::string::npos && !is_confusion(item.first)) {
      line += fmt::format(" {} {:.5g}",
                          item.first.substr(scope.size()),
                          trainer.state().last_metrics.number(item.first).value_or(0.0));
    }
  }
  print(line);
}

void ProgressLogger::on_fit_exception(Trainer&, std::exception_ptr) {
  live_.reset();
}

void ProgressLogger::on_fit_end(Trainer&, Loop&) {
  live_.reset();
  print(fmt::format("| Trained {} samples in {:.2f} s", total_samples_, train_seconds_));
}

void ProgressLogger::log(const Metrics& values, int64_t update) {
  if (live_) {
    live_->take(values, update);
  }
  for (const Metrics::Item& item : values.items()) {
    const size_t slash = item.first.rfind('/');
    const std::string name = slash == std::string::npos ? item.first : item.first.substr(slash + 1);
    if (name == "loss" || name == "val_loss") {
      loss_ = values.number(item.first);
    }
  }
}

void register_progress_logger(Registry<Logger>& registry) {
  add_filter_keys(
      registry
          .add<ProgressLogger>("ProgressLogger",
                               "Shows progress: a live block on a terminal, else a line with loss "
                               "and rates on log steps.")
          .key("metrics",
               &ProgressLogger::Options::metrics,
               "globs of what the live block shows; none: up to four with a direction"));
}

}  // namespace rondo
