#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rondo::test {

/// Writes vocab.json and merges.txt: all bytes, what the merges make, "<|endoftext|>".
/// \param merges  pairs of letters, as in merges.txt: "h e"
void write_byte_pairs(const std::filesystem::path& folder, const std::vector<std::string>& merges);

}  // namespace rondo::test
