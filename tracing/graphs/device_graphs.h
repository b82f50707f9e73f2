#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace rondo {

/// Launches on a device, recorded once.
class DeviceGraph {
 public:
  DeviceGraph() = default;
  DeviceGraph(const DeviceGraph&) = delete;
  DeviceGraph& operator=(const DeviceGraph&) = delete;
  virtual ~DeviceGraph() = default;

  /// Records what `walk` launches from this thread; none of it runs. Tensors that `walk` makes and
  /// that outlive it lie in memory of the graph, where each launch writes them again; the memory of
  /// the others is used again within the graph.
  /// \throws c10::Error  when `walk` does what cannot be recorded, such as to wait for the device
  virtual void capture(const std::function<void()>& walk) = 0;

  /// Starts the launches behind everything that was started before. Does not wait.
  virtual void launch() = 0;
};

/// What recorded steps need of devices of one type. Used from one thread.
class DeviceGraphs {
 public:
  DeviceGraphs() = default;
  DeviceGraphs(const DeviceGraphs&) = delete;
  DeviceGraphs& operator=(const DeviceGraphs&) = delete;
  virtual ~DeviceGraphs() = default;

  /// Graphs made here are launched one after the other, in the order of their captures where one
  /// reads what another made.
  virtual std::unique_ptr<DeviceGraph> make_graph() = 0;

  /// Memory of the host that the device can read while the host goes on: uint8 [bytes], for one
  /// copy. It may be let go while the copy is under way.
  virtual at::Tensor host_bytes(int64_t bytes) = 0;
};

using MakeDeviceGraphs = std::function<std::unique_ptr<DeviceGraphs>()>;

/// Lets steps be recorded on devices of a type; a later call for it replaces an earlier one.
void register_device_graphs(c10::DeviceType type, MakeDeviceGraphs make);

/// Null where steps cannot be recorded on such devices.
std::unique_ptr<DeviceGraphs> make_device_graphs(c10::DeviceType type);

bool has_device_graphs(c10::DeviceType type);

}  // namespace rondo
