#pragma once

#include "cli/command_line.h"
#include "trainer/registries.h"

namespace rondo {

/// Each runs one command of the program and returns its exit code: 0 done, 1 failed, 2 bad usage or
/// config, 3 finished but some checkpoints were skipped or not uploaded, 129, 130 and 143 stopped
/// by SIGHUP, SIGINT and SIGTERM, of a fit after its current update is finished and saved. What
/// users read goes to standard error; results that programs read go to standard output. \throws
/// whatever ends the command; `cli_main` turns it into a message and a code
int run_fit(const CommandLine& line, Registries& registries);
int run_validate(const CommandLine& line, Registries& registries);
int run_validate_all(const CommandLine& line, Registries& registries);
int run_verify_resume(const CommandLine& line, Registries& registries);
int run_checkpoint(const CommandLine& line, Registries& registries);
int run_predict(const CommandLine& line, Registries& registries);
int run_data(const CommandLine& line, Registries& registries);
int run_debug(const CommandLine& line, Registries& registries);
int run_gradients(const CommandLine& line, Registries& registries);
int run_describe(const CommandLine& line, Registries& registries);
int run_export(const CommandLine& line, Registries& registries);
int run_export_step(const CommandLine& line, Registries& registries);
int run_plan(const CommandLine& line, Registries& registries);
int run_plot_schedule(const CommandLine& line, Registries& registries);
int run_inspect(const CommandLine& line, Registries& registries);
int run_version(const CommandLine& line, Registries& registries);

}  // namespace rondo
