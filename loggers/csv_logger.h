#pragma once

#include <filesystem>

#include "loggers/logger.h"
#include "loggers/text_file.h"

namespace rondo {

/// Appends one line a value, `step,name,value`, below a line of names. Long form: a metric that
/// begins later needs no new column.
class CsvLogger final : public Logger {
 public:
  struct Options {
    std::filesystem::path path = "metrics.csv";  ///< relative to model_dir
  };

  explicit CsvLogger(const Options& options) : options_(options) {}

  void pre_setup(Trainer& trainer) override;
  void log(const Metrics& values, int64_t update) override;

  void flush() override { file_.flush(); }

 private:
  Options options_;
  TextFile file_;
  bool has_names_ = false;  // the file was looked at and begins with the line of names
};

}  // namespace rondo
