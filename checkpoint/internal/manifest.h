#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rondo::detail {

constexpr const char kManifestRecord[] = "rondo/manifest";

/// Grows when an older rondo would misread what a newer one writes.
constexpr int kFormatVersion = 1;

/// What wrote the file, and at which update of a run: TOML, `format` in the first line.
std::string make_manifest(std::optional<int64_t> step);

/// \throws Malformed  when it is none, or of a format newer than this rondo knows
void check_manifest(std::string_view manifest);

}  // namespace rondo::detail
