#pragma once

#include <string>
#include <variant>
#include <vector>

namespace rondo {

enum class Command { Fit, Validate, ValidateAll, Predict, Describe, Inspect, Version };

/// What a user asked for. Only the fields of its command are filled.
struct CommandLine {
  Command command = Command::Version;
  std::string config;                  ///< fit, validate, validate_all, predict: the TOML file
  std::vector<std::string> overrides;  ///< `key.path=value`, in the order given; each has a key
  bool dry_run = false;                ///< check, print the resolved run, and stop
  bool json = false;                   ///< one JSON object as the last line of standard output
  std::string model_dir;               ///< empty: as the file says
  std::string checkpoint;              ///< a path, "none", or empty: as the file says
  std::vector<std::string> plugins;    ///< shared libraries to load before the file is checked
  std::string name;                    ///< describe: a component; empty lists all
  std::string target;                  ///< inspect: a run directory or a checkpoint
  std::string graph;                   ///< inspect: the step whose graph to print; empty: none
};

/// The command line is answered already: print the text and end with the code.
struct Exit {
  int code = 0;  ///< 0 for help and version, 2 for bad usage
  std::string text;
  bool to_stderr = false;
};

/// Reads the arguments of `main`. Looks at nothing else: no file, no environment.
std::variant<CommandLine, Exit> parse_command_line(int argc, const char* const* argv);

}  // namespace rondo
