#pragma once

#include "cli/command_line.h"

namespace CLI {
class App;
}

namespace rondo {

// The commands of rondo with their arguments, by what they are about. They write to `line`, which
// must outlive `root`.

/// What trains or evaluates a run, or looks at it before.
void add_run_commands(CLI::App& root, CommandLine& line);

/// What works on the files that a run left.
void add_result_commands(CLI::App& root, CommandLine& line);

/// What shows recorded runs.
void add_record_commands(CLI::App& root, CommandLine& line);

/// What tells about rondo itself.
void add_program_commands(CLI::App& root, CommandLine& line);

}  // namespace rondo
