#include "callbacks/builtin/hang_watchdog.h"

#include <fmt/format.h>

#include <cstdlib>

#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

HangWatchdog::HangWatchdog(const Options& options) : options_(options) {
  detail::require(options.timeout_s > 0.0, "HangWatchdog.timeout_s", "> 0", options.timeout_s);
  detail::require(options.then == "tell" || options.then == "abort",
                  "HangWatchdog.then",
                  R"("tell" or "abort")",
                  options.then);
}

HangWatchdog::~HangWatchdog() {
  stop();
}

void HangWatchdog::on_enter_fit(
    Trainer& trainer, Cleanup& cleanup, const DataLoader&, const Loaders&, Loop&) {
  stop();
  newest_ = Clock::now();
  is_watching_ = true;
  has_warned_ = false;
  thread_ = std::thread([this, log = trainer.log()] { watch(log); });
  cleanup.push([this](const std::exception_ptr&) { stop(); });
}

void HangWatchdog::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_watching_ = false;
  }
  changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void HangWatchdog::watch(const TextLog& log) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (is_watching_) {
    const auto limit = newest_ + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(options_.timeout_s));
    if (has_warned_) {
      changed_.wait(lock);
    } else if (changed_.wait_until(lock, limit) == std::cv_status::timeout && is_watching_ &&
               Clock::now() >= limit) {
      has_warned_ = true;
      log.error(fmt::format("HangWatchdog: no batch has finished for {:.1f} s{}",
                            seconds_since(newest_),
                            options_.then == "abort" ? ": the process ends" : ""));
      if (options_.then == "abort") {
        log.flush();
        std::abort();
      }
    }
  }
}

void HangWatchdog::batch_ended(Trainer& trainer) {
  bool had_warned = false;
  double past = 0.0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    past = seconds_since(newest_);
    newest_ = Clock::now();
    had_warned = has_warned_;
    has_warned_ = false;
  }
  if (had_warned) {
    changed_.notify_all();
    trainer.alert(AlertLevel::Warning, fmt::format("a batch took {:.1f} s", past));
  }
}

void HangWatchdog::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  batch_ended(trainer);
}

void HangWatchdog::on_validate_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  batch_ended(trainer);
}

void register_hang_watchdog(Registry<Callback>& registry) {
  using Options = HangWatchdog::Options;
  registry.add<HangWatchdog>("HangWatchdog", "Warns when no batch of a fit finishes for a while.")
      .key("timeout_s", &Options::timeout_s, greater_than(0), "seconds without a batch")
      .key("then",
           &Options::then,
           one_of({"tell", "abort"}),
           "abort: the process ends, and `fit --max-restarts` starts it again");
}

}  // namespace rondo
