#pragma once

#include <c10/core/Device.h>

#include <optional>

namespace rondo {

class Trainer;

/// The device of `BackendOptions::device`. Where it has no index, the ranks of a host take the
/// devices in turn. Nothing when there is no such device.
std::optional<c10::Device> device_of_run(const Trainer& trainer);

}  // namespace rondo
