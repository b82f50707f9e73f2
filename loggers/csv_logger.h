#pragma once

#include <filesystem>

#include "callbacks/writes_on_thread.h"
#include "loggers/logger.h"
#include "loggers/text_file.h"

namespace rondo {

/// Appends one line a value, `step,name,value`, below a line of names. Long form: a metric that
/// begins later needs no new column. A fit that resumes drops the lines that it logs again; one
/// that begins moves an older file aside (TextFile::start_over).
class CsvLogger final : public FilteredLogger, public WritesOnThread {
 public:
  struct Options {
    std::filesystem::path path = "metrics.csv";  ///< relative to model_dir
    std::optional<Time> log_steps = {};          ///< see LogFilter, also for the next
    std::vector<std::string> exclude = {};
  };

  explicit CsvLogger(const Options& options)
      : FilteredLogger({options.log_steps, options.exclude}), options_(options) {}

  /// \throws IoError  when the file cannot be written
  void pre_setup(Trainer& trainer) override;
  void log(const Metrics& values, int64_t update) override;
  void go_back(const LogPosition& position) override;

  void flush() override { file_.start_flush(); }

  void finish_writing() override { file_.flush(); }

  int64_t lost() override { return file_.lost(); }

 private:
  Options options_;
  TextFile file_;
  bool has_names_ = false;  // the file begins with the line of names
};

}  // namespace rondo
