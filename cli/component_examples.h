#pragma once

#include <string>
#include <string_view>

namespace rondo {

/// TOML that shows a component of a family in a run, or a section of the trainer ("trainer"): laid
/// over a run it is a run. "" for components of plugins.
std::string example_of(std::string_view family, std::string_view name);

}  // namespace rondo
