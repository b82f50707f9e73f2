#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/run_config.h"

namespace rondo::test {

/// A config: an MLP of `sizes` on 96 drawn digits in batches of 16, with Adam, for 2 updates.
std::string glyphs_toml(const std::filesystem::path& model_dir,
                        const std::string& sizes = "[784, 10]");

/// The run of that config with these overrides.
RunConfig glyphs_run(const std::filesystem::path& model_dir,
                     const std::string& sizes = "[784, 10]",
                     const std::vector<std::string>& overrides = {});

}  // namespace rondo::test
