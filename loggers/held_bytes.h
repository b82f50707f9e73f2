#pragma once

#include <cstddef>

#include "core/media.h"
#include "core/metric_values.h"

namespace rondo {

/// Bytes that values hold while they wait to be written, to within their headers.
size_t held_bytes(const Metrics& values);
size_t held_bytes(const Media& media);

}  // namespace rondo
