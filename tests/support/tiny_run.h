#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/state_dict.h"
#include "data/data_loader.h"
#include "loggers/logger.h"
#include "trainer/trainer_options.h"

namespace rondo::test {

/// A run that takes no time: a linear model of 4 inputs and 3 classes, SGD, 10 samples in batches
/// of 2.
TrainerOptions tiny_options(const std::filesystem::path& model_dir);

/// `size` samples {"x": float32[4], "label": int64} that follow from `seed`.
DataLoader tiny_loader(std::string label = "",
                       int64_t size = 10,
                       int64_t batch_size = 2,
                       uint64_t seed = 1);
DataLoader tiny_loader(std::string label,
                       int64_t size,
                       const LoaderOptions& batches,
                       uint64_t seed = 1);

/// Parameters, optimizer state, random state and counters of a Trainer, without clocks and metrics:
/// what two equal runs have in equal bytes.
StateDict bits_of(Trainer& trainer);

/// A log that keeps its warnings and errors in `lines`, which must outlive it.
TextLog quiet_log(std::vector<std::string>* lines = nullptr);

/// Keeps what it is given in a list that outlives it.
class MemoryLogger final : public Logger {
 public:
  struct Entry {
    int64_t update;
    std::string name;
    double value;
  };

  struct Options {
    std::vector<Entry>* entries = nullptr;
    int* flushes = nullptr;
  };

  explicit MemoryLogger(const Options& options) : options_(options) {}

  void log(const Metrics& values, int64_t update) override;
  void flush() override;

 private:
  Options options_;
};

/// The values logged under `name`, as (update, value).
std::vector<std::pair<int64_t, double>> values_of(const std::vector<MemoryLogger::Entry>& entries,
                                                  const std::string& name);

}  // namespace rondo::test
