#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "callbacks/callback.h"
#include "callbacks/core/logging_options.h"
#include "callbacks/listeners.h"
#include "core/timestamp.h"

namespace rondo {

/// Opens the run's text log and decides on which steps metrics are logged; fills slot `logging`.
/// Flushes the loggers when fit, train and validate end, also by an exception.
class LoggingCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "logging";

  /// \throws UsageError  for `log_steps` below 0
  static void check(const LoggingOptions& options);

  /// Opens `<artifact_dir>/run.log`, linked from `<model_dir>/latest_run.log`.
  void pre_setup(Trainer& trainer) override;

  /// Finds the callbacks that receive metrics.
  void post_setup(Trainer& trainer) override;
  void finalize() override;
  void on_enter_fit(Trainer& trainer, Cleanup&, const DataLoader&, const Loaders&, Loop&) override;
  void on_enter_train(Trainer& trainer, Cleanup&, const DataLoader&, Loop&, int64_t) override;
  void on_enter_validate(Trainer& trainer, Cleanup&, const DataLoader&, Loop&) override;

  /// Saves the newest value of each metric, which callbacks read before it is logged again. Flushes
  /// the loggers, so that values from before a checkpoint survive a crash after it.
  void on_save_checkpoint(Trainer& trainer, StateDict& state) override;
  void on_load_checkpoint(Trainer& trainer, const StateDict& state) override;

  /// Records the cause in the log file.
  void on_fit_exception(Trainer& trainer, std::exception_ptr error) override;
  void on_validate_exception(Trainer& trainer, std::exception_ptr error) override;

  /// True for an update in which `log_steps` falls due, and for the last one of the run.
  bool is_log_update(const Trainer& trainer, const Timestamp& time) const;

  /// True for every `log_steps`-th batch of a validation, if that counts updates, and for its last
  /// one. After the last batch: true unless a stop interrupted the validation.
  bool is_log_batch(const Trainer& trainer) const;

  const std::vector<HearsMetrics*>& listeners() const { return listeners_; }

  /// Names and classes of loggers that receive only values addressed to them.
  const std::vector<std::string>& removed() const { return removed_; }

  void remove_destination(std::string logger) { removed_.push_back(std::move(logger)); }

  /// Warns, the first time, about metrics that no logger receives.
  void tell_no_logger(const Trainer& trainer);

 private:
  Time log_steps_ = 1;
  bool told_no_logger_ = false;
  std::vector<HearsMetrics*> listeners_;  // callbacks of the Trainer, which owns them
  std::vector<std::string> removed_;
  Trainer* trainer_ = nullptr;  // whose log file is open; it owns this callback
  std::filesystem::path file_;
};

}  // namespace rondo
