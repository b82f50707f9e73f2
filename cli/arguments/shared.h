#pragma once

#include <cstdint>

#include "cli/command_line.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rondo {

// Arguments that several commands have. They write to `line`, which must outlive `app`.

/// The file of a run.
void add_config(CLI::App& app, CommandLine& line);

/// Values that replace those of the file.
void add_overrides(CLI::App& app, CommandLine& line);

/// Libraries with components.
void add_plugins(CLI::App& app, CommandLine& line);

/// All of these and the directory of the run.
void add_run_file(CLI::App& app, CommandLine& line);

/// The checkpoint to begin with.
void add_checkpoint_to_load(CLI::App& app, CommandLine& line);

/// The file to write.
void add_output(CLI::App& app, CommandLine& line);

/// An option that takes a whole number >= `least`.
CLI::Option& add_count(
    CLI::App& app, const char* name, int64_t& value, const char* doc, int64_t least = 1);

}  // namespace rondo
