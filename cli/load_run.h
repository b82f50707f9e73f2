#pragma once

#include <filesystem>
#include <vector>

#include "cli/command_line.h"
#include "trainer/run_config.h"

namespace rondo {

/// The phases of the run that a command line asks for: the file, or that of the directory of a run
/// that trained, its plugins, the overrides and the options that stand for keys of it (`-o`,
/// `--checkpoint`; `--checkpoint none` in every phase).
/// \throws ConfigError  with every fault
/// \throws UsageError   when `-o` or the path of a checkpoint is given for a file of several phases
std::vector<RunConfig> load_run(const CommandLine& line, Registries& registries);

/// The file that the run in a directory was made of, resolved.
/// \throws IoError  when the directory holds no run that began with a file
std::filesystem::path config_of_run(const std::filesystem::path& directory);

}  // namespace rondo
