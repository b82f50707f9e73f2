#include "cli/cli_main.h"

#include <csignal>
#include <exception>
#include <iostream>
#include <optional>
#include <variant>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/rank_launcher.h"
#include "cli/rank_output.h"
#include "cli/record_commands.h"
#include "cli/signal_handlers.h"
#include "core/error.h"
#include "trainer/registries.h"

namespace rondo {

namespace {

int run(const CommandLine& line, Registries& registries) {
  switch (line.command) {
    case Command::Fit:
      return run_fit(line, registries);
    case Command::Validate:
      return run_validate(line, registries);
    case Command::ValidateAll:
      return run_validate_all(line, registries);
    case Command::VerifyResume:
      return run_verify_resume(line, registries);
    case Command::Checkpoint:
      return run_checkpoint(line, registries);
    case Command::Predict:
      return run_predict(line, registries);
    case Command::Debug:
      return line.gradients ? run_gradients(line, registries) : run_debug(line, registries);
    case Command::Plan:
      return run_plan(line, registries);
    case Command::Describe:
      return run_describe(line, registries);
    case Command::Export:
      return run_export(line, registries);
    case Command::ExportStep:
      return run_export_step(line, registries);
    case Command::PlotSchedule:
      return run_plot_schedule(line, registries);
    case Command::Inspect:
      return run_inspect(line, registries);
    case Command::Data:
      return run_data(line, registries);
    case Command::Completion:
    case Command::Man:
      break;  // parse_command_line answers these
    case Command::Version:
      return run_version(line, registries);
    case Command::Launch:
      return launch_ranks(line, "/proc/self/exe");
    case Command::Runs:
    case Command::Plot:
    case Command::Diff:
    case Command::Query:
    case Command::Alerts:
    case Command::Watch:
    case Command::Board:
      return *run_record_command(line);
  }
  throw UsageError("the command line names no command");
}

/// Tells what was thrown. \return the exit code
int failed(const std::exception_ptr& error) {
  std::cerr << describe(error) << std::endl;
  return exit_code_of(error);
}

/// Whether processes that a launcher starts do it together.
bool joins_ranks(const CommandLine& line) {
  switch (line.command) {
    case Command::Fit:
    case Command::Validate:
    case Command::ValidateAll:
    case Command::Predict:
      return !line.dry_run;
    default:
      return false;
  }
}

/// Runs the command. \return its exit code, also where it throws
int run_told(const CommandLine& line, const std::function<void(Registries&)>& register_components) {
  try {
    Registries registries;
    register_builtins(registries);
    if (register_components) {
      register_components(registries);
    }
    return run(line, registries);
  } catch (...) {
    return failed(std::current_exception());
  }
}

}  // namespace

int cli_main(int argc, char** argv, const std::function<void(Registries&)>& register_components) {
  open_closed_streams();
  survive_failing_output();
  std::signal(SIGUSR1, SIG_IGN);  // asks a run to save: until there is one, there is nothing to do
  try {
    const auto parsed = parse_command_line(argc, argv);
    if (const auto* exit = std::get_if<Exit>(&parsed)) {
      (exit->to_stderr ? std::cerr : std::cout) << exit->text << std::flush;
      return exit->code;
    }
    const auto& line = std::get<CommandLine>(parsed);
    if (line.ui && !line.dry_run) {
      return fit_with_dashboard(line, "/proc/self/exe", argv);
    }
    std::optional<RankOutput> output;
    if (joins_ranks(line)) {
      output.emplace();
    }
    const int code = run_told(line, register_components);
    if (output) {
      output->end(code);
    }
    return code;
  } catch (...) {
    return failed(std::current_exception());
  }
}

}  // namespace rondo
