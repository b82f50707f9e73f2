#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>

#include "cli/arguments/families.h"
#include "cli/arguments/shared.h"

namespace rondo {

namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 done, 1 failed, 2 bad usage or config, 3 finished but some checkpoints were\n"
    "skipped or not uploaded, 129, 130 and 143 stopped by SIGHUP, Ctrl-C and SIGTERM.";

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

void add_fit(CLI::App& root, CommandLine& line) {
  CLI::App& fit =
      add_run_command(root, "fit", "Train, validating in between, as the file says", line);
  add_count(fit,
            "--max-restarts",
            line.max_restarts,
            "Restart a run that dies, at most this many times in a row without progress",
            0);
  fit.add_flag("--ui", line.ui, "Show the run full-screen: curves, system and log")
      ->excludes(fit.get_option("--params"));
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

void add_predict(CLI::App& root, CommandLine& line) {
  CLI::App& app =
      add_evaluation(root, "predict", "Write the model's outputs for a data set to a file", line);
  add_count(app, "--jobs", line.jobs, "Processes that share the batches, a power of two");
}

void add_plan(CLI::App& root, CommandLine& line) {
  CLI::App& app = *root.add_subcommand("plan", "Show how much memory training takes, and for what");
  add_run_file(app, line);
  app.add_flag("--json", line.json, "End standard output with one line of JSON, the result");
  app.add_option("--memory-limit",
                 line.memory_limit,
                 "Exit with code 1 when the process would need more memory, such as 512MB or 2GiB")
      ->type_name("SIZE");
  add_count(app,
            "--ranks",
            line.ranks,
            "Also show the optimizer's state in one of so many ranks that share it")
      .check(CLI::Range(int64_t{1}, int64_t{1} << 20));
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
  add_count(app, "--ranks", line.ranks, "Ranks of the run, one of which each kill hits")
      .check(CLI::Range(int64_t{1}, int64_t{1} << 12));
  add_count(app,
            "--seed",
            line.seed,
            "Seed for the moments of the kills, and for the run when its file has no seed",
            0);
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

}  // namespace

void add_run_commands(CLI::App& root, CommandLine& line) {
  add_fit(root, line);
  add_evaluation(root, "validate", "Validate one checkpoint", line);
  add_validate_all(root, line);
  add_predict(root, line);
  add_plan(root, line);
  add_plot_schedule(root, line);
  add_verify_resume(root, line);
  add_launch(root, line);
  add_data(root, line);
}

}  // namespace rondo
