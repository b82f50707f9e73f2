#pragma once

#include "cli/command_line.h"
#include "trainer/run_config.h"

namespace rondo {

/// The phases of the run that a command line asks for: the file, its plugins, the overrides and the
/// options that stand for keys of every phase (`-o`, `--checkpoint`).
/// \throws ConfigError  with every fault
std::vector<RunConfig> load_run(const CommandLine& line, Registries& registries);

}  // namespace rondo
