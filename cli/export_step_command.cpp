// `rondo export-step run.toml out.step`

#include "trainer/export_step.h"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>

#include "checkpoint/checkpoint_file.h"
#include "cli/commands.h"
#include "cli/load_run.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/writable_path.h"
#include "trainer/auto_options.h"

namespace rondo {

int run_export_step(const CommandLine& line, Registries& registries) {
  std::vector<RunConfig> phases = load_run(line, registries);
  if (phases.size() != 1) {
    throw UsageError(line.config + " has several phases; export-step takes a file of one");
  }
  resolve_auto(phases.front(), registries);
  require_writable_file(line.output);  // before the run is built, not after
  const StepFile file = export_step(phases.front());
  real_file_system()->create_directories(std::filesystem::absolute(line.output).parent_path());
  write_checkpoint(*real_file_system(), line.output, to_state(file));
  size_t instructions = 0;
  for (const StepProgram& program : file.programs) {
    instructions += program.instructions.size();
  }
  const std::string checkpoint = file.manifest.at("checkpoint").as_string();
  std::cerr << fmt::format("{}: {} instructions in {} program{}, from update {}{}\n",
                           line.output,
                           instructions,
                           file.programs.size(),
                           file.programs.size() == 1 ? "" : "s",
                           file.manifest.at("update").as_int(),
                           checkpoint.empty() ? "" : " of " + checkpoint);
  return 0;
}

}  // namespace rondo
