#pragma once

#include <filesystem>
#include <memory>

#include "loggers/logger.h"

namespace rondo {

class EventFile;

/// Writes numbers as TensorBoard scalars; other values are left out.
class TensorBoardLogger final : public Logger {
 public:
  struct Options {
    std::filesystem::path summary_dir = "events";  ///< relative to model_dir
  };

  explicit TensorBoardLogger(const Options& options);
  ~TensorBoardLogger() override;

  void pre_setup(Trainer& trainer) override;
  void log(const Metrics& values, int64_t update) override;
  void flush() override;

 private:
  std::filesystem::path directory_;
  std::unique_ptr<EventFile>
      file_;  // made at the first value, so that a run that logs nothing leaves none
};

}  // namespace rondo
