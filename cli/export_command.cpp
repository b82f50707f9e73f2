// `rondo export run.toml --format=torchscript -o model.ts`

#include <fmt/format.h>

#include <iostream>

#include "cli/commands.h"
#include "cli/load_run.h"
#include "core/error.h"
#include "core/writable_path.h"
#include "trainer/auto_options.h"
#include "trainer/export_inference.h"

namespace rondo {

int run_export(const CommandLine& line, Registries& registries) {
  const ExportOptions options{line.format, line.batch_size, line.outputs};
  check(options);
  std::vector<RunConfig> phases = load_run(line, registries);
  RunConfig& run = phases.back();  // what several phases train ends with the last one
  resolve_auto(run, registries);
  require_writable_file(line.output);  // before the run is built, not after
  const std::filesystem::path checkpoint = export_model(run, options, line.output);
  std::cerr << fmt::format("{}: {}{}\n",
                           line.output,
                           line.format,
                           checkpoint.empty() ? "" : " of " + checkpoint.string());
  return 0;
}

}  // namespace rondo
