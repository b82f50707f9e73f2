#pragma once

#include "cli/command_line.h"
#include "trainer/run_config.h"

namespace rondo {

/// The run that a command line asks for: the file, its plugins, the overrides and the options that
/// stand for keys (`-o`, `--checkpoint`). \throws ConfigError  with every fault
RunConfig load_run(const CommandLine& line, Registries& registries);

}  // namespace rondo
