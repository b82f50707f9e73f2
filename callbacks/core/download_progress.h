#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "remote/remote_store.h"

namespace rondo {

class Trainer;

/// A line such as "downloading s3://bucket/a.pt  45 % of 12.0 MiB [=========           ]", shorter
/// than `columns`; without the bar where the size is not known or there is no room.
std::string download_line(const std::string& address,
                          int64_t bytes,
                          std::optional<int64_t> of_bytes,
                          int columns);

/// Opens stores whose downloads show such a line at the end of a terminal, unless the run says no
/// more than warnings.
OpenRemoteStore with_progress(const Trainer& trainer, OpenRemoteStore open);

}  // namespace rondo
