#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "callbacks/callback.h"

namespace rondo {

/// Guards a run that a supervisor or a person restarts repeatedly; fills slot `autorestart`.
/// Records every attempt in `<model_dir>/restarts.log`. Refuses a fit whose last `max_num_restarts`
/// restarts made no progress, and names why each of them ended.
class AutorestartCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "autorestart";

  /// \throws UsageError  for a negative number of restarts
  void pre_setup(Trainer& trainer) override;

  /// \throws Error  when too many attempts began at the same update as this one
  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) override;
  void on_fit_end(Trainer& trainer, Loop&) override;
  void on_fit_exception(Trainer& trainer, std::exception_ptr error) override;

 private:
  void add_line(const std::string& line) const;
  void end_attempt(const Trainer& trainer, const std::string& line);

  int64_t max_restarts_ = 0;  // 0: not watched
  bool is_running_ = false;   // this attempt has its line in the log
  std::filesystem::path history_;
};

}  // namespace rondo
