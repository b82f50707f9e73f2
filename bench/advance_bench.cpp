// Measures by how much `FitRun::advance_for` goes over its budget, and what cutting steps in pieces
// costs. Prints a line for each budget.
//
//   advance_bench --workload=mlp --calls=2000

#include <fmt/format.h>
#include <torch/torch.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

#include "data/tensor_dataset.h"
#include "loops/fit_run.h"
#include "optim/optimizers.h"
#include "trainer/trainer.h"
#include "workloads.h"

namespace {

using namespace rondo;
using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr int64_t kWarmUp = 50;

TrainerOptions options_of(const bench::Workload& w, const std::filesystem::path& directory) {
  TrainerOptions options;
  options.model_dir = directory;
  options.seed = 1;
  options.model = model_of(w);
  options.optimizer = use<AdamW>({w.lr});
  options.loop.max_steps = int64_t{1} << 40;
  options.loop.eval_frequency = 0;
  options.logging.log_steps = 0;
  options.logging.log_level = "error";
  return options;
}

double at_share(std::vector<double>& values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

struct Measured {
  std::vector<double> over;  // microseconds
  double us_per_step = 0.0;
};

Measured measure(FitRun& run, const Trainer& trainer, Microseconds budget, int64_t calls) {
  Measured measured;
  const int64_t before = trainer.state().global_step();
  double sum = 0.0;
  for (int64_t i = 0; i < calls; ++i) {
    const Clock::time_point start = Clock::now();
    run.advance_for(std::chrono::duration_cast<std::chrono::nanoseconds>(budget));
    const double took = Microseconds(Clock::now() - start).count();
    sum += took;
    measured.over.push_back(took - budget.count());
  }
  run.finish_step();
  measured.us_per_step = sum / static_cast<double>(trainer.state().global_step() - before);
  return measured;
}

}  // namespace

int main(int argc, char** argv) {
  std::string name = "mlp";
  int64_t calls = 2000;
  CLI::App app("How far advance_for goes over its budget");
  app.add_option("--workload", name, "as in step_bench")
      ->check(CLI::IsMember(bench::workload_names()));
  app.add_option("--calls", calls, "of advance_for, for each budget")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  const bench::Workload& w = bench::workload(name);
  const auto directory =
      std::filesystem::temp_directory_path() / fmt::format("advance_bench_{}", ::getpid());
  {
    const Batch data = w.make_batch();
    LoaderOptions batches;
    batches.batch_size = data.size();
    Trainer trainer(options_of(w, directory));
    FitRun run(trainer, DataLoader("train", from_tensors(data), batches), {}, LoadFrom::nothing());
    for (int64_t i = 0; i < kWarmUp; ++i) {
      run.advance();
    }
    const Clock::time_point start = Clock::now();
    for (int64_t i = 0; i < kWarmUp; ++i) {
      run.advance();
    }
    fmt::print("{}: {:.1f} us a step in one piece\n",
               name,
               Microseconds(Clock::now() - start).count() / kWarmUp);
    for (const double budget : {20.0, 100.0, 500.0, 2000.0}) {
      Measured measured = measure(run, trainer, Microseconds(budget), calls);
      const double median = at_share(measured.over, 0.5);
      const double nearly_all = at_share(measured.over, 0.99);
      const double most = at_share(measured.over, 1.0);
      fmt::print(
          "budget {:>6.0f} us: over by {:>6.1f} us (median), {:>6.1f} (99 %), {:>6.1f} (most); "
          "{:.1f} us a step\n",
          budget,
          median,
          nearly_all,
          most,
          measured.us_per_step);
    }
  }
  std::filesystem::remove_all(directory);
}
