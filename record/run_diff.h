#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "record/run_record.h"

namespace rondo {

/// Keys of a configuration that are not the same in all runs; those of places are left out, which
/// always differ.
std::vector<std::string> differing_keys(const std::vector<const RunRecord*>& runs);

/// The first update at which both logged the metric and the values differ.
std::optional<int64_t> first_difference(const std::vector<RecordPoint>& a,
                                        const std::vector<RecordPoint>& b);

}  // namespace rondo
