#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "contenders.h"

// What contenders share.

namespace bench {

inline constexpr uint64_t kSeed = 1;
inline constexpr int64_t kLogEvery = 10;
inline constexpr int64_t kSaveEvery = 1000;
inline constexpr int64_t kScheduleLength = 100000;

/// That batch, in several places in memory that steps go round: data that a loader makes anew does
/// not lie in the caches from the step before.
class RepeatedBatch {
 public:
  RepeatedBatch(const Workload& w, int64_t copies, c10::Device device);

  const rondo::Batch& next();

 private:
  std::vector<rondo::Batch> copies_;
  size_t next_ = 0;
};

/// A directory for what is saved, gone afterwards.
class Scratch {
 public:
  explicit Scratch(const std::string& of);
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The learning rate of a scheduled workload.
double cosine(double lr, int64_t update);

bool is_save_due(const Workload& w, int64_t update);

std::shared_ptr<Network> seeded_network(const Workload& w, c10::Device device);

at::Tensor loss_of(Network& network, const rondo::Batch& batch, const Place& place);

}  // namespace bench
