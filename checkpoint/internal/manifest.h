#pragma once

#include <string>
#include <string_view>

namespace rondo::detail {

constexpr const char kManifestRecord[] = "rondo/manifest";

/// Grows when an older rondo would misread what a newer one writes.
constexpr int kFormatVersion = 1;

/// What wrote the file: TOML, `format` in the first line.
std::string make_manifest();

/// \throws Malformed  when it is none, or of a format newer than this rondo knows
void check_manifest(std::string_view manifest);

}  // namespace rondo::detail
