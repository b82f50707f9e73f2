// `rondo plot-schedule run.toml`

#include <filesystem>
#include <iostream>

#include "cli/commands.h"
#include "cli/load_run.h"
#include "cli/schedule_chart.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/writable_path.h"

namespace rondo {

namespace {

constexpr int64_t kPoints = 1000;

}  // namespace

int run_plot_schedule(const CommandLine& line, Registries& registries) {
  const std::vector<RunConfig> phases = load_run(line, registries);
  if (phases.size() != 1) {
    throw UsageError(line.config + " has several phases; plot-schedule takes a file of one");
  }
  if (!line.svg.empty()) {
    require_writable_file(line.svg);  // before the model is built, not after
  }
  const std::vector<ScheduleCurve> curves = schedule_curves(phases.front(), kPoints);
  for (const ScheduleCurve& curve : curves) {
    std::cout << text_chart(curve);
  }
  std::cout << std::flush;
  if (!line.svg.empty()) {
    real_file_system()->create_directories(std::filesystem::absolute(line.svg).parent_path());
    write_atomically(*real_file_system(), line.svg, svg_chart(curves));
    std::cerr << line.svg << ": written\n";
  }
  return 0;
}

}  // namespace rondo
