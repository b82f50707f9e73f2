#pragma once

#include <optional>
#include <string>

#include "cli/command_line.h"

namespace rondo {

/// Runs the commands that read what runs recorded: `runs`, `plot`, `diff`, `query`, `alerts`,
/// `watch` and `board`. They need no LibTorch, so that the launcher answers them itself. Results go
/// to standard output. \return the exit code, 0 done, 1 failed, 2 bad usage; nothing for another
/// command
std::optional<int> run_record_command(const CommandLine& line);

/// `fit --ui`: starts a program with these arguments but `--ui`, and shows its run full-screen.
/// \return its exit code; 2 without a terminal
int fit_with_dashboard(const CommandLine& line, const std::string& program, char** arguments);

/// \name One command each. \throws UsageError, DataError
/// @{
int query(const CommandLine& line);

/// \return 1 when there are any
int alerts(const CommandLine& line);
int watch(const CommandLine& line);

/// Serves until the process is ended.
int board(const CommandLine& line);
/// @}

}  // namespace rondo
