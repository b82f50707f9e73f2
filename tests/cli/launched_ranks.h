#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "support/temp_dir.h"

namespace rondo::test {

/// Writes the file of a run that ranks can share.
std::filesystem::path ranks_config(const TempDir& dir);

/// The words of `rondo fit`.
std::vector<std::string> fit(const std::filesystem::path& config, const std::string& model_dir);

std::vector<std::string> after(std::vector<std::string> first,
                               const std::vector<std::string>& then);

/// The entries of two checkpoints that make up the bits of a run and differ.
std::vector<std::string> different_bits(const std::filesystem::path& a,
                                        const std::filesystem::path& b);

}  // namespace rondo::test
