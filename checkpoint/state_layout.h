#pragma once

#include <string>
#include <vector>

#include "core/state_dict.h"

namespace rondo {

/// Everything that keeps `saved` from taking the place of `own`, one line each: entries that are
/// missing, unexpected or of another kind, shape or dtype, and texts that differ. A number fits a
/// 0-dim tensor of floats.
std::vector<std::string> layout_differences(const StateDict& own, const StateDict& saved);

}  // namespace rondo
