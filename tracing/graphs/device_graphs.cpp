#include "tracing/graphs/device_graphs.h"

#include <map>
#include <mutex>
#include <utility>

#ifdef RONDO_HAS_CUDA
#include "tracing/graphs/cuda_graphs.h"
#endif

namespace rondo {

namespace {

struct KnownDevices {
  std::mutex mutex;
  std::map<c10::DeviceType, MakeDeviceGraphs> makers;
};

KnownDevices& known_devices() {
  static KnownDevices known;
  return known;
}

std::unique_ptr<DeviceGraphs> make_builtin([[maybe_unused]] c10::DeviceType type) {
#ifdef RONDO_HAS_CUDA
  if (type == c10::kCUDA) {
    return make_cuda_graphs();
  }
#endif
  return nullptr;
}

}  // namespace

void register_device_graphs(c10::DeviceType type, MakeDeviceGraphs make) {
  KnownDevices& known = known_devices();
  const std::lock_guard lock(known.mutex);
  known.makers[type] = std::move(make);
}

std::unique_ptr<DeviceGraphs> make_device_graphs(c10::DeviceType type) {
  KnownDevices& known = known_devices();
  const std::lock_guard lock(known.mutex);
  const auto found = known.makers.find(type);
  return found == known.makers.end() ? make_builtin(type) : found->second();
}

}  // namespace rondo
