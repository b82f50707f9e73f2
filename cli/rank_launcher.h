#pragma once

#include <string>

#include "cli/command_line.h"

namespace rondo {

/// Runs `rondo launch`: starts the ranks of this host, waits for them, and starts them again where
/// that was asked for. Rank 0 has the terminal; each other rank writes into a file, which is shown
/// when it fails. When a rank fails, the others have two seconds to find that out, then 30 to stop.
/// Ctrl-C, SIGTERM, SIGHUP and SIGUSR1 are handed on to all ranks. Needs no LibTorch.
/// \param program  what runs a command of rondo: `rondo-engine`, or a user's own program
/// \return the exit code of the rank that failed first; 0 when none did
int launch_ranks(const CommandLine& line, const std::string& program);

}  // namespace rondo
