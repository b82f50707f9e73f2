#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "cli/arguments/families.h"
#include "cli/arguments/shared.h"

namespace rondo {

namespace {

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

void add_query(CLI::App& root, CommandLine& line) {
  CLI::App& app = *root.add_subcommand(
      "query", "Answer a select statement of SQL about what runs recorded, or save it for SQLite");
  app.add_option("runs", line.files, "Runs or folders of runs (default: here), then the statement")
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

}  // namespace

void add_record_commands(CLI::App& root, CommandLine& line) {
  add_runs(root, line);
  add_plot(root, line);
  add_diff(root, line);
  add_query(root, line);
  add_alerts(root, line);
  add_watch(root, line);
  add_board(root, line);
}

}  // namespace rondo
