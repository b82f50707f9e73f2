#pragma once

#include <memory>
#include <string>

#include "core/metric_values.h"

namespace rondo {

/// Reads how busy an NVIDIA GPU is from its driver, through NVML, a library that comes with the
/// driver. Numbers of GPUs are those of their slots, which are CUDA's too where they are alike, or
/// with CUDA_DEVICE_ORDER=PCI_BUS_ID. Source: NVIDIA Management Library, nvml.h.
class GpuMeter {
 public:
  static constexpr const char* kLibrary = "libnvidia-ml.so.1";

  /// \param index    of the device in this process: 1 of "cuda:1"
  /// \param library  a file, or a name that the loader finds
  explicit GpuMeter(int index, const std::string& library = kLibrary);
  ~GpuMeter();

  /// Why nothing can be read; "" when it can.
  const std::string& problem() const { return problem_; }

  /// `gpu_percent`, `gpu_memory_percent`, `gpu_memory_used_gb`, `gpu_power_watts` and
  /// `gpu_temperature_celsius`: those that the driver knows.
  Metrics read() const;

 private:
  struct Driver;

  std::string problem_;
  std::unique_ptr<Driver> driver_;  // null where nothing can be read
};

namespace detail {

/// The name that CUDA_VISIBLE_DEVICES gives a device of this process, a number or a UUID; its own
/// number where the variable is not set.
/// \param visible  the variable's value; null: not set
std::string name_of_gpu(int index, const char* visible);

}  // namespace detail

}  // namespace rondo
