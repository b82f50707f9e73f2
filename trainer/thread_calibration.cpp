#include "trainer/thread_calibration.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "backends/numeric_environment.h"
#include "core/available_cores.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/json.h"
#include "trainer/rehearsal.h"
#include "trainer/trainer.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

constexpr double kWorthIt = 0.95;  // of the time under fewer threads

struct Timing {
  int threads;
  double seconds;  // of an update
};

fs::path record_of(const Trainer& trainer) {
  return trainer.options().model_dir / "threads.json";
}

/// What the choice depends on, in one line.
std::string circumstances(const Trainer& trainer) {
  const NumericEnvironment here = current_environment();
  return json_string(fmt::format("{} cores, LibTorch {}, {}, {}, run {:016x}",
                                 available_cores(),
                                 here.libtorch,
                                 here.cpu_capability,
                                 here.blas,
                                 std::hash<std::string>()(trainer.options().config_text)));
}

std::vector<int> candidates() {
  const int cores = available_cores();
  std::vector<int> all;
  for (int threads = 1; threads < cores; threads *= 2) {
    all.push_back(threads);
  }
  all.push_back(cores);
  return all;
}

std::string record_text(const Trainer& trainer, int best, const std::vector<Timing>& timings) {
  std::string times;
  for (const Timing& timing : timings) {
    times += fmt::format(
        "{}\"{}\": {:.1f}", times.empty() ? "" : ", ", timing.threads, timing.seconds * 1e6);
  }
  return fmt::format("{{\"threads\": {},\n \"circumstances\": {},\n \"us_per_update\": {{{}}}}}\n",
                     best,
                     circumstances(trainer),
                     times);
}

}  // namespace

std::optional<int> recorded_threads(const Trainer& trainer) {
  const fs::path file = record_of(trainer);
  if (!fs::is_regular_file(file)) {
    return std::nullopt;
  }
  const std::string text = real_file_system()->read(file);
  const std::string label = "{\"threads\": ";
  if (text.rfind(label, 0) != 0 || text.find(circumstances(trainer)) == std::string::npos) {
    return std::nullopt;
  }
  const int threads = std::atoi(text.c_str() + label.size());
  return threads >= 1 && threads <= available_cores() ? std::optional(threads) : std::nullopt;
}

int calibrate_threads(const Trainer& trainer, const DataLoader& train) {
  std::vector<Timing> timings;
  Timing best{1, 0.0};
  for (const int threads : candidates()) {
    TrainerOptions options = trainer.options();
    options.backend.threads = threads;
    const Timing timing{threads, seconds_of_update(std::move(options), train)};
    timings.push_back(timing);
    if (threads == 1 || timing.seconds < best.seconds * kWorthIt) {
      best = timing;
    }
  }
  write_atomically(
      *real_file_system(), record_of(trainer), record_text(trainer, best.threads, timings));
  trainer.log().info(fmt::format("threads: {} ({:.0f} us an update, {:.0f} us with one)",
                                 best.threads,
                                 best.seconds * 1e6,
                                 timings.front().seconds * 1e6));
  return best.threads;
}

}  // namespace rondo
