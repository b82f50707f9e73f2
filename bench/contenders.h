#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/tensor_map.h"
#include "workloads.h"

namespace bench {

/// What the command line says.
struct Settings {
  int threads = 1;      // 0: "auto"
  int64_t copies = 16;  // of the batch
  bool exact = true;
  int64_t timed_replays = 0;
  std::string device = "cpu";
  std::string precision = "fp32";
};

/// Where a contender computes, and in which format.
struct Place {
  c10::Device device = c10::kCPU;
  std::optional<c10::ScalarType> autocast = std::nullopt;
};

/// \throws rondo::NotSupportedError  for a device that this LibTorch does not have
Place place_of(const Settings& settings);

/// Who is timed.
class Contender {
 public:
  virtual ~Contender() = default;
  virtual void train(int64_t updates) = 0;

  /// Of the last step. Waits for the device.
  virtual double loss() const = 0;

  /// Waits for the device.
  virtual void wait() const { loss(); }

  /// The time of each instruction, for people; "" when none was timed.
  virtual std::string timeline() const { return ""; }
};

/// The one batch that everybody repeats.
rondo::Batch make_batch(const Workload& w);

/// \param name     "libtorch": by hand; "graph": that as a graph of the device; "fit"; else one of
///                 rondo's backends
/// \param updates  of a whole fit
std::unique_ptr<Contender> make_contender(const Workload& w,
                                          const std::string& name,
                                          const Settings& settings,
                                          int64_t updates);

}  // namespace bench
