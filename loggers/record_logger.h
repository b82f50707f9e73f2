#pragma once

#include <optional>
#include <set>
#include <string>

#include "callbacks/listeners.h"
#include "callbacks/writes_on_thread.h"
#include "core/file_descriptor.h"
#include "loggers/logger.h"
#include "loggers/text_file.h"

namespace rondo {

/// Writes the record of a fit, `<model_dir>/record.jsonl`, which `rondo runs`, `plot` and `diff`
/// read: `docs/record_format.md`. Nothing is cut from it. A fit that resumes says at which update,
/// and readers pass over what it does again. While it goes on, the file is locked (`flock`), which
/// tells readers that the run is alive. At its end it writes `summary.md` and `results.svg`, with
/// its metrics and their curves, into the artifact directory. Validations and predictions outside
/// of a fit write nothing.
class RecordLogger final : public FilteredLogger, public HearsAlerts, public WritesOnThread {
 public:
  using Options = LogFilter;

  explicit RecordLogger(const Options& options) : FilteredLogger(options) {}

  /// \throws IoError  when the file cannot be written
  void pre_setup(Trainer& trainer) override;
  void go_back(const LogPosition& position) override;
  void on_enter_fit(Trainer&, Cleanup&, const DataLoader&, const Loaders&, Loop&) override;
  void on_fit_start(Trainer&, const DataLoader&, const Loaders&, Loop&) override;
  void on_fit_end(Trainer&, Loop&) override;
  void on_after_save_checkpoint(Trainer&, const std::filesystem::path& path) override;
  void on_validate_end(Trainer& trainer, Model&, Loop&) override;
  void on_alert(Trainer& trainer, const AlertMessage& alert) override;
  void log(const Metrics& values, int64_t update) override;

  /// Of more than 4 KiB it writes a file, `<model_dir>/media/<hash of its bytes>`.
  void log_media(const Media& media, int64_t update) override;

  void flush() override { file_.start_flush(); }

  void finish_writing() override { file_.flush(); }

  int64_t lost() override { return file_.lost(); }

 private:
  void begin_session(int64_t update);
  void end_session(const char* status, const std::string& reason);
  void write(const char* kind, int64_t update, const std::string& members);
  void call(void (TextFile::*method)());
  std::string position_at(int64_t update) const;
  void tell_direction(const std::string& metric, int64_t update);
  void lock();
  void write_summary();

  Trainer* trainer_ = nullptr;
  TextFile file_;
  detail::FileDescriptor lock_{-1};
  bool is_open_ = false;            // a session goes on
  const char* status_ = "stopped";  // as the fit ended
  std::string stop_reason_;
  double flushed_ = 0.0;
  std::optional<int64_t> samples_of_epoch_;  // where known
  std::set<std::string> told_;  // metrics whose direction was looked for in this session
};

}  // namespace rondo
