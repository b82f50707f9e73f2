#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rondo {

enum class Command {
  Fit,
  Validate,
  ValidateAll,
  Predict,
  Plan,
  PlotSchedule,
  VerifyResume,
  Checkpoint,
  Debug,
  Describe,
  Export,
  ExportStep,
  Inspect,
  Completion,
  Man,
  Runs,
  Plot,
  Diff,
  Launch,
  Query,
  Alerts,
  Watch,
  Board,
  Data,
  Version
};

/// What a user asked for. Only the fields of its command are filled.
struct CommandLine {
  Command command = Command::Version;
  std::string config;                  ///< of what reads a run's file: the TOML file
  std::string params;                  ///< a JSON object, applied after the overrides; "": none
  std::vector<std::string> overrides;  ///< `key.path=value`, in the order given; each has a key
  bool dry_run = false;                ///< check, print the resolved run, and stop
  bool json = false;                   ///< one JSON object as the last line of standard output
  std::string model_dir;               ///< empty: as the file says
  std::string checkpoint;              ///< a path, "none", or empty: as the file says
  bool untrained = false;              ///< evaluations: also with weights that nobody trained
  std::vector<std::string> plugins;    ///< shared libraries to load before the file is checked
  bool quiet = false;                  ///< only warnings and errors
  bool ui = false;                     ///< fit: shows the run full-screen
  int64_t max_restarts = 0;            ///< fit: how often a run that dies is started again
  int64_t since = 0;                   ///< validate_all: no checkpoint of an update before this
  int64_t multiple_of = 1;             ///< validate_all: only updates that are multiples of this
  bool force = false;                  ///< validate_all: also what was evaluated before
  int64_t hang_timeout = 0;            ///< launch: seconds without a batch; 0: as long as it takes
  int64_t jobs = 1;                    ///< validate_all, predict: processes that evaluate, >= 1
  bool watch = false;                  ///< validate_all: go on with checkpoints that appear
  int64_t steps = 50;                  ///< verify-resume: updates of the run, >= 1
  int64_t every = 5;                   ///< verify-resume: updates between two saves, >= 1
  int64_t kills = 5;                   ///< verify-resume: how often the run is killed, >= 1
  int64_t seed = 1;                    ///< verify-resume: of kills and a seedless run, >= 0
  std::string action;                  ///< checkpoint: info, diff …; data: show or check
  std::vector<std::string>
      files;           ///< checkpoint, plot, diff, query: what it works on; launch: the command
  std::string output;  ///< checkpoint average, data show, describe, export, export-step, plot …
  std::string format = "torchscript";  ///< export: of the file
  int64_t batch_size = 0;              ///< export: rows of a batch; 0: as the loader's
  std::vector<std::string> outputs;    ///< export: which; none: all but losses
  std::string name;                    ///< describe: a component; empty lists all
  std::string shell;                   ///< completion: bash, zsh or fish
  std::string page;                    ///< man: a command; empty: rondo itself
  std::string target;                  ///< inspect, debug, runs, watch, board: a directory
  bool nan = false;                    ///< debug: find what made the first NaN
  bool timeline = false;               ///< inspect: where the time of a replay goes
  int64_t replays = 50;                ///< inspect: of each step that a timeline measures, >= 1
  std::string memory_limit;            ///< plan: such as 512MB; empty: none
  std::string svg;                     ///< plot-schedule: the picture to write; empty: none
  std::vector<std::string> metrics;    ///< runs, plot: globs of names; empty: a few
  std::string sort = "name";           ///< runs: "name", "status", "time" or a metric
  std::string status;                  ///< runs: only of this status; empty: all
  std::string host = "127.0.0.1";      ///< board: where it listens
  int64_t port = 7007;                 ///< board: 0: any that is free
  std::vector<std::string> run_globs;  ///< board: of names of runs; empty: all
  int64_t ranks = 1;                   ///< launch, plan, verify-resume: processes, >= 1
  int64_t nodes = 1;                   ///< launch: hosts, >= 1
  int64_t node_rank = -1;              ///< launch: number of this host; -1: not given
  std::string master_addr;             ///< launch: host 0; empty: this one
  int64_t master_port = 0;             ///< launch: a port of host 0; 0: any free one
  std::string log_dir;                 ///< launch: of the ranks' output; empty: a temporary one
  int64_t min_ranks = 0;               ///< launch: fewest that a restart takes; 0: all
  bool gradients = false;              ///< debug: compare them with finite differences
  int64_t samples = 0;                 ///< data: to read of each loader; 0: as the action does
  std::string graph;                   ///< inspect: the step whose graph to print; empty: none
};

/// The command line is answered already: print the text and end with the code.
struct Exit {
  int code = 0;  ///< 0 for help and version, 2 for bad usage
  std::string text;
  bool to_stderr = false;
};

/// Reads the arguments of `main`. Looks at nothing else but for a directory in place of a run's
/// file, which is replaced by the file that it stands for. Answers help,
/// version, `completion` and `man`.
std::variant<CommandLine, Exit> parse_command_line(int argc, const char* const* argv);

/// Whether rondo has a command of this name.
bool is_command(std::string_view name);

}  // namespace rondo
