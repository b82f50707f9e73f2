#pragma once

#include <optional>

#include "cli/command_line.h"

namespace rondo {

/// Runs the commands that read what runs recorded: `runs`, `plot` and `diff`. They need no
/// LibTorch, so that the launcher answers them itself. Results go to standard output. \return the
/// exit code, 0 done, 1 failed, 2 bad usage; nothing for another command
std::optional<int> run_record_command(const CommandLine& line);

}  // namespace rondo
