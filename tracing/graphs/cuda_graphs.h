#pragma once

#include <memory>

#include "tracing/graphs/device_graphs.h"

namespace rondo {

/// CUDA graphs, of the device that is current. Built where LibTorch has CUDA.
std::unique_ptr<DeviceGraphs> make_cuda_graphs();

}  // namespace rondo
