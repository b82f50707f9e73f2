#pragma once

#include <cstdint>

namespace rondo {

/// Batches of so many bytes that a loader makes ahead where LoaderOptions::prefetch does not say:
/// more of small ones, as waking its thread costs as much as a small step.
int64_t usual_prefetch_depth(int64_t batch_bytes);

}  // namespace rondo
