#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "core/log.h"

namespace rondo {

/// The names for `BackendOptions::without_passes`; a step's report counts the same passes.
std::vector<std::string> pass_names();

/// Sets LibTorch's thread count when `options` asks for another one.
/// \param log  receives warnings about steps that settle late or cannot be verified
/// \throws UsageError  for an option outside of its range
/// \throws NotSupportedError  for traced steps on another device than the CPU
std::unique_ptr<Backend> make_backend(const BackendOptions& options, TextLog log = TextLog());

}  // namespace rondo
