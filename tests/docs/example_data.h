#pragma once

#include <filesystem>

namespace rondo::test {

/// Writes the files that the examples of docs/reference name into a folder, small and made up.
void write_example_data(const std::filesystem::path& folder);

}  // namespace rondo::test
