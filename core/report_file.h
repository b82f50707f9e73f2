#pragma once

#include <filesystem>
#include <string_view>

#include "core/log.h"

namespace rondo {

/// Writes a file that only tells of a run, such as what its steps consist of, and the directories
/// that it lies in. One that cannot be written is a warning: no run shall end for it.
void write_report(const TextLog& log, const std::filesystem::path& path, std::string_view text);

}  // namespace rondo
