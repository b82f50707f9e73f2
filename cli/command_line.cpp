#include "cli/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/command_help.h"
#include "cli/completion.h"
#include "cli/man_page.h"
#include "core/glob.h"
#include "core/version.h"

namespace rondo {

namespace {

constexpr int kUsageError = 2;

struct CommandName {
  const char* name;
  Command command;
};

constexpr CommandName kCommands[] = {{"fit", Command::Fit},
                                     {"validate", Command::Validate},
                                     {"validate_all", Command::ValidateAll},
                                     {"predict", Command::Predict},
                                     {"plan", Command::Plan},
                                     {"plot-schedule", Command::PlotSchedule},
                                     {"verify-resume", Command::VerifyResume},
                                     {"checkpoint", Command::Checkpoint},
                                     {"debug", Command::Debug},
                                     {"describe", Command::Describe},
                                     {"export", Command::Export},
                                     {"export-step", Command::ExportStep},
                                     {"inspect", Command::Inspect},
                                     {"completion", Command::Completion},
                                     {"man", Command::Man},
                                     {"runs", Command::Runs},
                                     {"plot", Command::Plot},
                                     {"diff", Command::Diff},
                                     {"launch", Command::Launch},
                                     {"query", Command::Query},
                                     {"alerts", Command::Alerts},
                                     {"watch", Command::Watch},
                                     {"board", Command::Board},
                                     {"data", Command::Data},
                                     {"version", Command::Version}};

constexpr const char* kExitCodes =
    "Exit codes: 0 done, 1 failed, 2 bad usage or config, 3 finished but some checkpoints were\n"
    "skipped or not uploaded, 129, 130 and 143 stopped by SIGHUP, Ctrl-C and SIGTERM.";

Exit usage_error(std::string_view program, std::string_view what) {
  return {kUsageError, fmt::format("{0}: {1}\nSee `{0} --help`.\n", program, what), true};
}

/// The rule of a `key.path=value` argument. \return what is wrong, as CLI11 wants it; "" when right
std::string override_fault(const std::string& text) {
  const size_t equals = text.find('=');
  const bool has_key = equals != std::string::npos && equals != 0;
  return has_key ? "" : fmt::format("expected key.path=value, got \"{}\"", text);
}

void add_plugins(CLI::App& app, CommandLine& line) {
  // An option of many values would take the overrides after it as well.
  app.add_option("--plugin", line.plugins, "Load components from this shared library (repeatable)")
      ->type_name("SO")
      ->allow_extra_args(false);
}

CLI::Option& add_count(
    CLI::App& app, const char* name, int64_t& value, const char* doc, int64_t least = 1) {
  return *app.add_option(name, value, doc)
              ->capture_default_str()
              ->check(CLI::Range(least, int64_t{1} << 40));
}

/// Puts in place of a directory the file that it stands for: its run.toml, or else its only TOML
/// file. An index of checkpoints is none.
/// \return the fault; "" when there is none
std::string find_config(std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    return "";
  }
  if (fs::is_regular_file(fs::path(path) / "run.toml", error)) {
    path = (fs::path(path) / "run.toml").string();
    return "";
  }
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (entry.path().extension() == ".toml" &&
        entry.path().filename() != "checkpoints_index.toml") {
      found.insert(entry.path().string());
    }
  }
  if (found.size() == 1) {
    path = *found.begin();
    return "";
  }
  return found.empty() ? "the directory " + path + " holds no TOML file"
                       : fmt::format(
                             "the directory {} holds several TOML files and none is "
                             "run.toml; name one of {}",
                             path,
                             fmt::join(found, ", "));
}

/// The file of a run.
void add_config(CLI::App& app, CommandLine& line) {
  app.add_option("config", line.config, "The run: a TOML file, or the directory of one")
      ->required()
      ->type_name("RUN.toml")
      ->transform(CLI::Validator(&find_config, ""));
}

void add_overrides(CLI::App& app, CommandLine& line) {
  app.add_option("overrides", line.overrides, "Values that replace those of the file")
      ->type_name("KEY.PATH=VALUE")
      ->check(override_fault);
  app.add_option("--params",
                 line.params,
                 "The same as a JSON object, such as {\"trainer.init.seed\": 3}; applied last")
      ->type_name("JSON");
}

/// The arguments of everything that reads a run's file.
void add_run_file(CLI::App& app, CommandLine& line) {
  add_config(app, line);
  add_overrides(app, line);
  app.add_option("-o,--model-dir",
                 line.model_dir,
                 "Directory of the run, for checkpoints and logs (default: as in the file)")
      ->type_name("DIR");
  add_plugins(app, line);
}

void add_checkpoint_to_load(CLI::App& app, CommandLine& line) {
  app.add_option("--checkpoint",
                 line.checkpoint,
                 "Begin with this checkpoint, or with none (default: as in the file)")
      ->type_name("PATH|none");
}

CLI::App& add_run_command(CLI::App& root, const char* name, const char* doc, CommandLine& line) {
  CLI::App& app = *root.add_subcommand(name, doc);
  add_run_file(app, line);
  add_checkpoint_to_load(app, line);
  app.add_flag("--dry-run", line.dry_run, "Check the run, print it resolved, and stop");
  app.add_flag("--json", line.json, "End standard output with one line of JSON, the result");
  app.add_flag("--quiet", line.quiet, "Print only warnings and errors");
  app.footer(kExitCodes);
  return app;
}

/// Adds a command that runs the model and does not train it.
CLI::App& add_evaluation(CLI::App& root, const char* name, const char* doc, CommandLine& line) {
  CLI::App& app = add_run_command(root, name, doc, line);
  app.add_flag(
      "--untrained", line.untrained, "Accept untrained weights when there is no checkpoint");
  return app;
}

void add_validate_all(CLI::App& root, CommandLine& line) {
  CLI::App& app =
      add_evaluation(root, "validate_all", "Validate many checkpoints and print a table", line);
  app.get_option("--checkpoint")
      ->description("Validate this checkpoint only (default: as in the file)")
      ->type_name("PATH")
      ->check([](const std::string& path) {
        return path == "none" ? "\"none\" is not possible here: validate_all validates files" : "";
      });
  add_count(app, "--since", line.since, "Only checkpoints of this update or later", 0);
  add_count(
      app, "--every", line.multiple_of, "Only checkpoints of updates that are multiples of this");
  app.add_flag("--force", line.force, "Validate again what validate_all.jsonl has already");
  CLI::Option* const watch =
      app.add_flag("--watch", line.watch, "Continue with checkpoints as they appear, until Ctrl-C");
  add_count(app, "--jobs", line.jobs, "Processes that evaluate checkpoints at the same time")
      .excludes(watch);
}

void add_plan(CLI::App& root, CommandLine& line) {
  CLI::App& app = *root.add_subcommand("plan", "Show how much memory training takes, and for what");
  add_run_file(app, line);
  app.add_flag("--json", line.json, "End standard output with one line of JSON, the result");
  app.add_option("--memory-limit",
                 line.memory_limit,
                 "Exit with code 1 when the process would need more memory, such as 512MB or 2GiB")
      ->type_name("SIZE");
}

void add_plot_schedule(CLI::App& root, CommandLine& line) {
  CLI::App& app = *root.add_subcommand(
      "plot-schedule", "Draw the schedules of a run, such as its learning rate over its updates");
  add_config(app, line);
  add_overrides(app, line);
  app.add_option("--svg", line.svg, "Also write the drawing into this file")->type_name("FILE.svg");
  add_plugins(app, line);
}

void add_verify_resume(CLI::App& root, CommandLine& line) {
  CLI::App& app = *root.add_subcommand(
      "verify-resume",
      "Kill a run at random moments and compare its end with an uninterrupted one");
  add_run_file(app, line);
  add_checkpoint_to_load(app, line);
  add_count(app, "--steps", line.steps, "Updates of the run");
  add_count(app, "--every", line.every, "Updates between two saves");
  add_count(app, "--kills", line.kills, "Number of kills");
  add_count(app,
            "--seed",
            line.seed,
            "Seed for the moments of the kills, and for the run when its file has no seed",
            0);
}

/// An action on files; `count`: how many, -1 for one or more.
CLI::App& add_action(
    CLI::App& checkpoint, const char* name, const char* doc, int count, CommandLine& line) {
  CLI::App& app = *checkpoint.add_subcommand(name, doc);
  app.add_option("files", line.files, "Checkpoints, or .safetensors")
      ->required()
      ->type_name("FILE")
      ->expected(count);
  app.callback([&line, name] { line.action = name; });
  return app;
}

void add_output(CLI::App& app, CommandLine& line) {
  app.add_option("-o,--output", line.output, "The file to write")->required()->type_name("FILE");
}

void add_checkpoint(CLI::App& root, CommandLine& line) {
  CLI::App& app = *root.add_subcommand("checkpoint", "Work on checkpoint files");
  app.require_subcommand(1);
  add_action(app, "info", "List what files hold: entries, kinds, and who wrote them", -1, line);
  add_action(
      app, "diff", "List every entry in which two files differ; code 1 when there is one", 2, line);
  add_action(
      app, "verify", "Read files whole, checking every byte; code 1 when one is broken", -1, line);
  add_action(
      app, "convert", "Write the first file as the second, in the format of its suffix", 2, line);
  add_action(app, "copy", "Copy a file that can be read whole, durably", 2, line);
  add_action(app, "delete", "Delete files and take them out of their run's index", -1, line);
  add_output(add_action(app, "average", "Write the mean of the models of several files", -1, line),
             line);
  CLI::App& merge =
      add_action(app,
                 "merge",
                 "Write low-rank adapters into the weights, of the first file or the second",
                 -1,
                 line);
  merge.get_option("files")->expected(1, 2);
  add_output(merge, line);
}

void add_export(CLI::App& root, CommandLine& line) {
  CLI::App& app =
      *root.add_subcommand("export", "Write a trained model into a file that other programs run");
  add_config(app, line);
  add_overrides(app, line);
  app.add_option("-o,--output", line.output, "The file to write")->required()->type_name("FILE");
  app.add_option(
         "--format", line.format, "TorchScript, the weights, or a forward pass for rondo_step.h")
      ->type_name("torchscript|safetensors|inference-step")
      ->capture_default_str();
  app.add_option("--batch-size", line.batch_size, "Rows of a batch (default: as the loader's)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  app.add_option("--outputs", line.outputs, "Outputs to give (default: all but losses)")
      ->type_name("NAME");
  app.add_option(
         "--checkpoint", line.checkpoint, "Export this checkpoint (default: as in the file)")
      ->type_name("PATH");
  add_plugins(app, line);
}

void add_export_step(CLI::App& root, CommandLine& line) {
  CLI::App& app = *root.add_subcommand(
      "export-step", "Write a run's training step into a file that C programs run: rondo_step.h");
  add_config(app, line);
  app.add_option("output", line.output, "The file to write")->required()->type_name("OUT.step");
  add_overrides(app, line);
  app.add_option(
         "--checkpoint", line.checkpoint, "Begin with this checkpoint (default: as in the file)")
      ->type_name("PATH");
  add_plugins(app, line);
}

void add_debug(CLI::App& root, CommandLine& line) {
  CLI::App& app = *root.add_subcommand("debug", "Find what made a run's NaN, or a wrong gradient");
  app.add_option("target", line.target, "The directory of the run, or its file")
      ->required()
      ->type_name("RUN_DIR|RUN.toml");
  CLI::Option* const nan = app.add_flag("--nan",
                                        line.nan,
                                        "Repeat the run in this directory from its newest sound "
                                        "checkpoint, and name the operator that made the first NaN "
                                        "or infinity");
  app.add_flag("--gradients",
               line.gradients,
               "Compare gradients of the first batch of this file's run with finite differences")
      ->excludes(nan);
  app.callback([&line] {
    if (!line.nan && !line.gradients) {
      throw CLI::RequiredError("--nan or --gradients");
    }
  });
  add_overrides(app, line);
  add_plugins(app, line);
}

void add_describe(CLI::App& root, CommandLine& line) {
  CLI::App& app =
      *root.add_subcommand("describe", "List all components, or the keys of one of them");
  CLI::Option* const name =
      app.add_option("name", line.name, "Show this component only; \"trainer\": what all runs have")
          ->type_name("NAME");
  CLI::Option* const json = app.add_flag("--json", line.json, "Print JSON");
  app.add_option(
         "--write", line.output, "Write the reference of all components as Markdown instead")
      ->type_name("DIR")
      ->excludes(name)
      ->excludes(json);
  add_plugins(app, line);
}

void add_inspect(CLI::App& root, CommandLine& line) {
  CLI::App& app = *root.add_subcommand(
      "inspect", "Show the recorded steps of a run, or the entries of a checkpoint");
  app.add_option("target", line.target, "A run directory or a checkpoint")
      ->required()
      ->type_name("RUN_DIR|FILE.pt");
  app.add_option("--graph", line.graph, "Print the graph of this step")->type_name("KEY");
  CLI::Option* const timeline = app.add_flag(
      "--timeline", line.timeline, "Train a few updates again and show where their time goes");
  add_count(app, "--replays", line.replays, "Replays of each step that the timeline measures")
      .needs(timeline);
}

void add_completion(CLI::App& root, CommandLine& line) {
  CLI::App& app = *root.add_subcommand(
      "completion", "Print the script with which a shell completes commands and options");
  app.add_option("shell", line.shell, "The shell")
      ->required()
      ->type_name("bash|zsh|fish")
      ->check([](const std::string& shell) {
        return shell == "bash" || shell == "zsh" || shell == "fish"
                   ? ""
                   : fmt::format("expected bash, zsh or fish, got \"{}\"", shell);
      });
}

void add_man(CLI::App& root, CommandLine& line) {
  CLI::App& app = *root.add_subcommand("man", "Print a manual page, as `man -l -` reads it");
  app.add_option("page", line.page, "The page of this command (default: of rondo)")
      ->type_name("COMMAND");
}

void add_metrics(CLI::App& app, CommandLine& line) {
  app.add_option("--metric", line.metrics, "Metrics whose names fit this pattern (repeatable)")
      ->type_name("GLOB")
      ->allow_extra_args(false);
}

void add_runs(CLI::App& root, CommandLine& line) {
  CLI::App& app = *root.add_subcommand("runs", "List the runs below a folder, with their results");
  app.add_option("folder", line.target, "Where to look, four folders deep (default: here)")
      ->type_name("DIR");
  add_metrics(app, line);
  app.add_option("--sort", line.sort, "Order: name, status, time (newest first) or a metric")
      ->capture_default_str()
      ->type_name("KEY");
  app.add_option("--status", line.status, "Only runs of this status")
      ->check(CLI::IsMember({"running", "done", "stopped", "failed", "crashed"}));
  app.add_flag("--json", line.json, "Print one JSON object a run");
}

void add_recorded_runs(CLI::App& app, CommandLine& line, int count) {
  app.add_option("runs", line.files, "Directories of runs")
      ->required()
      ->type_name("RUN_DIR")
      ->expected(count);
}

void add_plot(CLI::App& root, CommandLine& line) {
  CLI::App& app = *root.add_subcommand("plot", "Draw what runs logged, over each other");
  add_recorded_runs(app, line, -1);
  add_metrics(app, line);
  app.add_option("-o,--output", line.output, "Write an SVG file instead")->type_name("FILE.svg");
}

void add_diff(CLI::App& root, CommandLine& line) {
  add_recorded_runs(
      *root.add_subcommand("diff",
                           "Compare two runs: configuration and results; code 1 when they differ"),
      line,
      2);
}

void add_launch(CLI::App& root, CommandLine& line) {
  CLI::App& app = *root.add_subcommand(
      "launch", "Run a command in several processes that train together, the ranks");
  add_count(app, "-n,--ranks", line.ranks, "Ranks of this host");
  add_count(app, "--nodes", line.nodes, "Hosts, each of which runs this command");
  add_count(app, "--node-rank", line.node_rank, "Number of this host, from 0", 0).default_str("");
  app.add_option("--master-addr", line.master_addr, "Name or address of host 0")->type_name("HOST");
  add_count(app, "--master-port", line.master_port, "Free port of host 0, the same on all hosts")
      .default_str("");
  app.add_option(
         "--log-dir", line.log_dir, "Directory for the output of ranks (default: temporary)")
      ->type_name("DIR");
  add_count(app,
            "--max-restarts",
            line.max_restarts,
            "Start all ranks again when one fails, at most this many times",
            0);
  add_count(app,
            "--min-ranks",
            line.min_ranks,
            "When a restart fails too, continue with half the ranks, and no fewer than this")
      .default_str("");
  add_count(app,
            "--hang-timeout",
            line.hang_timeout,
            "Seconds without a batch of any rank after which they have failed; longer than a save")
      .default_str("");
  app.prefix_command();
  app.footer(
      "After the options follows what to run: a command of rondo, such as `fit run.toml`, or "
      "another\nprogram with its arguments. The exit code is that of the rank that failed first.");
}

void add_query(CLI::App& root, CommandLine& line) {
  CLI::App& app = *root.add_subcommand(
      "query", "Answer a select statement of SQL about what runs recorded, or save it for SQLite");
  app.add_option("runs", line.files, "Runs or folders of runs, then the statement")
      ->required()
      ->type_name("RUN_DIR|SQL")
      ->expected(-1);
  app.add_option("--save", line.output, "Write the tables into this SQLite file")
      ->type_name("FILE.db");
  app.add_flag("--json", line.json, "Print one JSON object a row");
  app.footer(
      "Tables: runs, config, metrics, checkpoints, validations, alerts, media. Example:\n"
      "rondo query experiments \"select run, min(value) from metrics where name = 'val/loss' group "
      "by run\"");
}

void add_alerts(CLI::App& root, CommandLine& line) {
  CLI::App& app =
      *root.add_subcommand("alerts", "List the alerts of runs; code 1 when there are any");
  app.add_option("runs", line.files, "Runs or folders of runs (default: here)")
      ->type_name("RUN_DIR")
      ->expected(-1);
  app.add_flag("--json", line.json, "Print one JSON object an alert");
}

void add_watch(CLI::App& root, CommandLine& line) {
  CLI::App& app =
      *root.add_subcommand("watch", "Show a run full-screen while it trains: curves, system, log");
  app.add_option("run", line.target, "Directory of the run")->required()->type_name("RUN_DIR");
}

void add_board(CLI::App& root, CommandLine& line) {
  CLI::App& app = *root.add_subcommand("board", "Show the runs below a folder in a browser, live");
  app.add_option("folder", line.target, "Where to look, four folders deep (default: here)")
      ->type_name("DIR");
  app.add_option("--run",
                 line.run_globs,
                 "Only runs whose directory, from the folder, fits this glob (repeatable)")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  app.add_option("--host", line.host, "Listen at this address; another machine needs a token")
      ->capture_default_str()
      ->type_name("HOST");
  app.add_option("--port", line.port, "Listen at this port; 0 takes any that is free")
      ->capture_default_str()
      ->type_name("PORT")
      ->check(CLI::Range(0, 65535));
  app.add_option("--export", line.output, "Write the page with all answers to this file, and end")
      ->type_name("FILE.html");
  app.footer(
      "Reads only. On a machine elsewhere, keep the default host and forward the port:\n"
      "ssh -L 7007:localhost:7007 MACHINE");
}

/// An action on the data of a run.
CLI::App& add_data_action(CLI::App& data, const char* name, const char* doc, CommandLine& line) {
  CLI::App& app = *data.add_subcommand(name, doc);
  add_run_file(app, line);
  app.add_flag("--json", line.json, "Print one line of JSON instead");
  app.callback([&line, name] { line.action = name; });
  return app;
}

void add_data(CLI::App& root, CommandLine& line) {
  CLI::App& app = *root.add_subcommand("data", "Look at the data of a run, before it trains");
  app.require_subcommand(1);
  CLI::App& show = add_data_action(
      app, "show", "Print first samples, statistics, class counts and pictures", line);
  add_count(show, "--samples", line.samples, "Samples of each loader to read (default: 1000)")
      .default_str("");
  show.add_option("--png", line.output, "Write the pictures into this file, too")
      ->type_name("FILE.png");
  CLI::App& check = add_data_action(
      app,
      "check",
      "Look for damage, duplicates between loaders, wrong labels, constant columns and leaks; code "
      "1 when something is found",
      line);
  add_count(check, "--samples", line.samples, "Samples of each loader to read (default: all)")
      .default_str("");
}

void add_commands(CLI::App& root, CommandLine& line) {
  CLI::App& fit =
      add_run_command(root, "fit", "Train, validating in between, as the file says", line);
  add_count(fit,
            "--max-restarts",
            line.max_restarts,
            "Restart a run that dies, at most this many times in a row without progress",
            0);
  fit.add_flag("--ui", line.ui, "Show the run full-screen: curves, system and log")
      ->excludes(fit.get_option("--params"));
  add_evaluation(root, "validate", "Validate one checkpoint", line);
  add_validate_all(root, line);
  add_evaluation(root, "predict", "Write the model's outputs for a data set to a file", line);
  add_plan(root, line);
  add_plot_schedule(root, line);
  add_verify_resume(root, line);
  add_checkpoint(root, line);
  add_debug(root, line);
  add_describe(root, line);
  add_export(root, line);
  add_export_step(root, line);
  add_inspect(root, line);
  add_completion(root, line);
  add_man(root, line);
  add_runs(root, line);
  add_plot(root, line);
  add_diff(root, line);
  add_launch(root, line);
  add_query(root, line);
  add_alerts(root, line);
  add_watch(root, line);
  add_board(root, line);
  add_data(root, line);
  root.add_subcommand("version", "Print the versions of rondo and of what it runs on");
}

const CommandName* find_command(std::string_view name) {
  const auto* found = std::find_if(std::begin(kCommands),
                                   std::end(kCommands),
                                   [&](const CommandName& c) { return c.name == name; });
  return found == std::end(kCommands) ? nullptr : found;
}

/// What is wrong with the name of a command of rondo, or of an action of a command.
std::string wrong_name(const CLI::App& app, const char* kind, std::string_view name) {
  std::vector<std::string> names;
  for (const CLI::App* known : app.get_subcommands({})) {
    names.push_back(known->get_name());
  }
  const std::string what = name.empty() ? fmt::format("expected the name of the {}", kind)
                                        : fmt::format("unknown {} \"{}\"", kind, name);
  return what + suggestion(name, names);
}

bool is_option(const std::string& argument) {
  return argument.rfind("-", 0) == 0;
}

/// Says which argument is one too many, and for an option which one may have been meant.
std::string unexpected_argument(const CLI::App& app) {
  const std::vector<std::string> rest = app.remaining();
  const auto option = std::find_if(rest.begin(), rest.end(), is_option);
  if (option == rest.end()) {
    return fmt::format("unexpected argument \"{}\"", rest.empty() ? "" : rest.front());
  }
  const std::string name = option->substr(0, option->find('='));
  std::vector<std::string> known;
  for (const CLI::Option* candidate : app.get_options()) {
    if (!candidate->get_positional()) {
      known.push_back(candidate->get_lnames().empty() ? "-" + candidate->get_snames().front()
                                                      : "--" + candidate->get_lnames().front());
    }
  }
  return fmt::format("unknown option {}{}", name, suggestion(name, known));
}

/// Says what is wrong with arguments that CLI11 refused, in rondo's words where they tell more.
Exit refused(const CLI::App& root, const CLI::ParseError& error) {
  const CLI::App* app = &root;
  std::string program = root.get_name();
  while (app->remaining().empty() && !app->get_subcommands().empty()) {
    app = app->get_subcommands().front();  // the command, then its action
    program += " " + app->get_name();
  }
  const std::vector<std::string> rest = app->remaining();
  const bool lacks_action = app->get_require_subcommand_min() > 0 && app->get_subcommands().empty();
  if (lacks_action && (rest.empty() || !is_option(rest.front()))) {
    return usage_error(program, wrong_name(*app, "action", rest.empty() ? "" : rest.front()));
  }
  const bool is_left = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
                       std::any_of(rest.begin(), rest.end(), is_option);
  return usage_error(program, is_left ? unexpected_argument(*app) : error.what());
}

/// The value's name as help shows it, without what CLI11 adds about its range.
std::string value_name(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) {
    return "";
  }
  const std::string name = option.get_type_name();
  return name.substr(0, name.find(':'));
}

ArgumentHelp argument_help(const CLI::Option& option) {
  ArgumentHelp help;
  help.is_positional = option.get_positional();
  if (!option.get_lnames().empty()) {
    help.long_name = "--" + option.get_lnames().front();
  }
  if (!option.get_snames().empty()) {
    help.short_name = "-" + option.get_snames().front();
  }
  help.value = value_name(option);
  help.doc = option.get_description();
  help.default_value = option.get_default_str();
  help.is_required = option.get_required();
  help.is_repeated = option.get_expected_max() > 1;
  return help;
}

CommandHelp help_of(const CLI::App& app) {
  CommandHelp help{app.get_name(), app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    help.arguments.push_back(argument_help(*option));
  }
  for (const CLI::App* command : app.get_subcommands({})) {
    help.commands.push_back(help_of(*command));
  }
  return help;
}

/// What `rondo man` prints.
Exit manual_page(const CommandHelp& rondo, const std::string& page) {
  if (page.empty()) {
    return {0, man_page(rondo), false};
  }
  std::vector<std::string> names;
  for (const CommandHelp& command : rondo.commands) {
    if (command.name == page) {
      return {0, man_page(rondo, command), false};
    }
    names.push_back(command.name);
  }
  return usage_error("rondo man",
                     fmt::format("unknown command \"{}\"{}", page, suggestion(page, names)));
}

void describe_program(CLI::App& root) {
  root.set_version_flag("--version", fmt::format("rondo {}", kVersion), "Print the version");
  root.set_help_flag("-h,--help", "Print this help");
  root.require_subcommand(0, 1);
  root.footer("`rondo COMMAND --help` explains a command.");
}

/// What follows the options of `launch` is checked before any rank starts.
std::variant<CommandLine, Exit> launch_line(const CLI::App& root, CommandLine line) {
  const CLI::App& launch = *root.get_subcommand("launch");
  line.files = launch.remaining();
  if (!line.files.empty() && is_option(line.files.front())) {
    return usage_error("rondo launch", unexpected_argument(launch));
  }
  if (!line.files.empty() && is_command(line.files.front())) {
    std::vector<const char*> arguments = {"rondo"};
    for (const std::string& word : line.files) {
      arguments.push_back(word.c_str());
    }
    const auto parsed = parse_command_line(static_cast<int>(arguments.size()), arguments.data());
    if (const Exit* const exit = std::get_if<Exit>(&parsed)) {
      return *exit;
    }
  }
  return line;
}

}  // namespace

bool is_command(std::string_view name) {
  return find_command(name) != nullptr;
}

std::variant<CommandLine, Exit> parse_command_line(int argc, const char* const* argv) {
  CommandLine line;
  CLI::App root("Trains models: runs described in TOML, each step recorded once and replayed.",
                "rondo");
  describe_program(root);
  add_commands(root, line);

  if (argc < 2) {
    return Exit{kUsageError, root.help(), true};
  }
  const std::string_view first = argv[1];
  const CommandName* named = find_command(first);
  if (named == nullptr && first.substr(0, 1) != "-") {
    return usage_error("rondo", wrong_name(root, "command", first));
  }
  try {
    // Before the command stands one option of rondo's own, or a mistake to tell.
    root.parse(named != nullptr ? argc : 2, argv);
  } catch (const CLI::CallForHelp&) {
    return Exit{0, root.help(), false};
  } catch (const CLI::CallForVersion& version) {
    return Exit{0, fmt::format("{}\n", version.what()), false};
  } catch (const CLI::ParseError& error) {
    return refused(root, error);
  }
  if (named == nullptr) {
    return usage_error("rondo", "the command must come first");
  }
  line.command = named->command;
  if (line.command == Command::Launch) {
    return launch_line(root, std::move(line));
  }
  switch (line.command) {
    case Command::Completion:
      return Exit{0, completion(line.shell, help_of(root)), false};
    case Command::Man:
      return manual_page(help_of(root), line.page);
    default:
      return line;
  }
}

}  // namespace rondo
