#pragma once

#include <cstdint>
#include <string>

#include "data/data_loader.h"

namespace rondo::detail {

inline constexpr int64_t kUsualPrefetch = 8;  // batches, of several workers together

/// \param loader  as messages call it
/// \throws UsageError  for an option out of its range, or one that another excludes
void check_options(const std::string& loader, const LoaderOptions& options);

/// What only a data set that is reached by index can give; nullptr when nothing is asked for.
const char* needs_index(const LoaderOptions& options);

}  // namespace rondo::detail
