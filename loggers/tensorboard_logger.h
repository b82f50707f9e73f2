#pragma once

#include <filesystem>
#include <memory>

#include "loggers/logger.h"

namespace rondo {

class EventFile;

/// Writes numbers as TensorBoard scalars; other values are left out. A fit starts a session where
/// it begins, after which readers drop what earlier ones logged beyond.
class TensorBoardLogger final : public Logger {
 public:
  struct Options {
    std::filesystem::path summary_dir = "events";  ///< relative to model_dir
  };

  explicit TensorBoardLogger(const Options& options);
  ~TensorBoardLogger() override;

  /// \throws IoError  when no file can be made in the directory
  void pre_setup(Trainer& trainer) override;
  void log(const Metrics& values, int64_t update) override;
  void go_back(const LogPosition& position) override;
  void flush() override;

 private:
  std::filesystem::path directory_;
  std::unique_ptr<EventFile>
      file_;  // made at the first value, so that a run that logs nothing leaves none
};

}  // namespace rondo
