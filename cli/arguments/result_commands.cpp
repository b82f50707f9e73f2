#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "cli/arguments/families.h"
#include "cli/arguments/shared.h"

namespace rondo {

namespace {

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

}  // namespace

void add_result_commands(CLI::App& root, CommandLine& line) {
  add_checkpoint(root, line);
  add_export(root, line);
  add_export_step(root, line);
  add_debug(root, line);
  add_inspect(root, line);
}

}  // namespace rondo
