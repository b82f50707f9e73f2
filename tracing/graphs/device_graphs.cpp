#include "tracing/graphs/device_graphs.h"

#include <map>
#include <mutex>
#include <utility>

#ifdef RONDO_HAS_CUDA
#include "tracing/graphs/cuda_graphs.h"
#endif

namespace rondo {

namespace {

using Makers = std::map<c10::DeviceType, MakeDeviceGraphs>;

Makers builtin() {
#ifdef RONDO_HAS_CUDA
  return {{c10::kCUDA, &make_cuda_graphs}};
#else
  return {};
#endif
}

struct KnownDevices {
  std::mutex mutex;
  Makers makers = builtin();
};

KnownDevices& known_devices() {
  static KnownDevices known;
  return known;
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
  return found == known.makers.end() ? nullptr : found->second();
}

bool has_device_graphs(c10::DeviceType type) {
  KnownDevices& known = known_devices();
  const std::lock_guard lock(known.mutex);
  return known.makers.count(type) > 0;
}

}  // namespace rondo
