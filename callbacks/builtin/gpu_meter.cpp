#include "callbacks/builtin/gpu_meter.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace rondo {

namespace {

// The part of nvml.h that is used here.
using NvmlDevice = void*;

struct NvmlUtilization {
  unsigned gpu;  // percent
  unsigned memory;
};

struct NvmlMemory {
  uint64_t total;  // bytes
  uint64_t free;
  uint64_t used;
};

constexpr int kNvmlSuccess = 0;
constexpr int kNvmlTemperatureOfGpu = 0;

struct CloseLibrary {
  void operator()(void* library) const { ::dlclose(library); }
};

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

struct GpuMeter::Driver {
  /// \return what was missing; "" when the device is open
  std::string open(const std::string& file, const std::string& gpu);
  ~Driver();

  template <class... Arguments>
  bool call(const char* name, Arguments... arguments) const {
    using Function = int (*)(Arguments...);
    const auto function = reinterpret_cast<Function>(::dlsym(library.get(), name));
    return function != nullptr && function(arguments...) == kNvmlSuccess;
  }

  std::unique_ptr<void, CloseLibrary> library;
  NvmlDevice device = nullptr;
  bool is_started = false;
};

std::string GpuMeter::Driver::open(const std::string& file, const std::string& gpu) {
  library.reset(::dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL));
  if (library == nullptr) {
    return fmt::format("there is no {}, which comes with the driver", file);
  }
  is_started = call("nvmlInit_v2");
  if (!is_started) {
    return fmt::format("{} cannot reach the driver", file);
  }
  const bool is_open =
      is_number(gpu)
          ? call("nvmlDeviceGetHandleByIndex_v2", static_cast<unsigned>(std::stoul(gpu)), &device)
          : call("nvmlDeviceGetHandleByUUID", gpu.c_str(), &device);
  return is_open ? "" : fmt::format("the driver knows no GPU {}", gpu);
}

GpuMeter::Driver::~Driver() {
  if (is_started) {
    call("nvmlShutdown");
  }
}

GpuMeter::GpuMeter(int index, const std::string& library) : driver_(std::make_unique<Driver>()) {
  problem_ =
      driver_->open(library, detail::name_of_gpu(index, std::getenv("CUDA_VISIBLE_DEVICES")));
  if (!problem_.empty()) {
    driver_.reset();
  }
}

GpuMeter::~GpuMeter() = default;

Metrics GpuMeter::read() const {
  Metrics values;
  if (driver_ == nullptr) {
    return values;
  }
  NvmlUtilization load = {};
  if (driver_->call("nvmlDeviceGetUtilizationRates", driver_->device, &load)) {
    values.set("gpu_percent", static_cast<double>(load.gpu));
  }
  NvmlMemory memory = {};
  if (driver_->call("nvmlDeviceGetMemoryInfo", driver_->device, &memory) && memory.total > 0) {
    const auto used = static_cast<double>(memory.used);
    values.set("gpu_memory_percent", 100.0 * used / static_cast<double>(memory.total));
    values.set("gpu_memory_used_gb", used / 1e9);
  }
  unsigned milliwatts = 0;
  if (driver_->call("nvmlDeviceGetPowerUsage", driver_->device, &milliwatts)) {
    values.set("gpu_power_watts", static_cast<double>(milliwatts) / 1e3);
  }
  unsigned celsius = 0;
  if (driver_->call("nvmlDeviceGetTemperature", driver_->device, kNvmlTemperatureOfGpu, &celsius)) {
    values.set("gpu_temperature_celsius", static_cast<double>(celsius));
  }
  return values;
}

std::string detail::name_of_gpu(int index, const char* visible) {
  std::string_view names = visible != nullptr ? visible : "";
  for (int i = 0; !names.empty(); ++i) {
    const size_t comma = names.find(',');
    if (i == index) {
      std::string name(names.substr(0, comma));
      name.erase(std::remove(name.begin(), name.end(), ' '), name.end());
      return name;
    }
    names = comma == std::string_view::npos ? "" : names.substr(comma + 1);
  }
  return std::to_string(index);
}

}  // namespace rondo
