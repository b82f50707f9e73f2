#pragma once

#include <cstdint>

namespace rondo {

/// The label that LibTorch's losses of classes leave out by default, and with them rondo's losses,
/// metrics, masks and padded batches.
constexpr int64_t kIgnoredLabel = -100;

}  // namespace rondo
