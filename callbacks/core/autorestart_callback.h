#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "callbacks/callback.h"

namespace rondo {

/// Watches a run that is started again and again, by a supervisor or by hand: its attempts are
/// kept in `<model_dir>/restarts.log`, and a fit whose last `max_num_restarts` restarts made no
/// progress is refused with the causes of their ends. Fills slot `autorestart`.
class AutorestartCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "autorestart";

  /// \throws UsageError  for a negative number of restarts
  void pre_setup(Trainer& trainer) override;

  /// \throws Error  when too many attempts began where this one begins
  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) override;
  void on_fit_end(Trainer& trainer, Loop&) override;
  void on_fit_exception(Trainer& trainer, std::exception_ptr error) override;

 private:
  void add_line(const std::string& line) const;
  void end_attempt(const Trainer& trainer, const std::string& line);

  int64_t max_restarts_ = 0;  // 0: not watched
  bool is_running_ = false;   // this attempt has its line
  std::filesystem::path history_;
};

}  // namespace rondo
