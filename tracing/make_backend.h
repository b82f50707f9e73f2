#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "core/log.h"
#include "tracing/plan/instruments.h"

namespace rondo {

/// The names for `BackendOptions::without_passes`; a step's report counts the same passes.
std::vector<std::string> pass_names();

/// The device of `BackendOptions::device`: one that LibTorch has here, and for which steps can run.
/// Nothing when there is none.
/// \param process  number of this process on its host: processes take the devices in turn where
///                 `name` is "cuda", without an index
std::optional<c10::Device> find_device(const std::string& name, int process = 0);

/// Sets LibTorch's thread count when `options` asks for another one.
/// \param log          receives warnings about steps that settle late or cannot be verified
/// \param instruments  what is measured of traced steps, besides `options.timed_replays`
/// \throws UsageError  for an option outside of its range
/// \throws NotSupportedError  for traced steps where this build has no graphs for the device
std::unique_ptr<Backend> make_backend(const BackendOptions& options,
                                      TextLog log = TextLog(),
                                      const Instruments& instruments = {});

}  // namespace rondo
