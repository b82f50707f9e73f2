// Times one training step: rondo's backends and the loop that one writes by hand with torch::nn and
// torch::optim. Same initial weights (one seed), same batch; prints a JSON line for each.
//
//   step_bench --workload=mlp --threads=1 --steps=400 --rounds=5
//   step_bench --workload=zoo --steps=30        # seventeen kinds of steps, one after the other
//   step_bench --workload=mlp --backend=traced --backend=fit
//   step_bench --workload=mlp --threads=auto    # a fit under the threads that it finds to be best
//
// Steps go round several places in memory with that batch, as the batches of a loader do: one that
// is trained on again and again stays in the caches, which no training has (--copies=1).
//
// They take turns, round by round, in one process; the median round counts. `libtorch` is the loop
// by hand, `graph` (on a GPU) that loop recorded by hand as a graph of the device, with a fused
// update, `eager`, `traced` and `traced-interpreter` are the step under rondo's backends, `fit` is
// `traced` with everything around it: Trainer, loader, hooks, metrics, the recipes' loggers.

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/gpu_environment.h"
#include "contenders.h"
#include "core/error.h"
#include "tracing/make_backend.h"
#include "workloads.h"
#include "zoo/zoo.h"

namespace {

using bench::Contender;
using bench::Settings;
using bench::Workload;
using Clock = std::chrono::steady_clock;

struct Rounds {
  int64_t warm_up = 20;  // updates before the clock starts; captures are among them
  int64_t steps = 400;   // of a round
  int count = 5;

  int64_t updates() const { return warm_up + steps * count; }
};

struct Entry {
  const Workload* workload;
  std::string peer;
  std::unique_ptr<Contender> contender;
  std::vector<double> seconds;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void time_in_turns(std::vector<Entry>& entries, const Rounds& rounds) {
  for (Entry& entry : entries) {
    entry.contender->train(rounds.warm_up);
    entry.contender->wait();
  }
  for (int round = 0; round < rounds.count; ++round) {
    for (Entry& entry : entries) {
      const Clock::time_point start = Clock::now();
      entry.contender->train(rounds.steps);
      entry.contender->wait();
      entry.seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
  }
}

const char* prefix_of(const std::string& peer) {
  return peer == "libtorch" ? "" : peer == "graph" ? "libtorch-" : "rondo-";
}

/// Of all contenders of the process together.
std::string peak_of(const std::string& device) {
  const auto found = rondo::find_device(device);
  const auto bytes = found ? rondo::peak_device_bytes(*found) : std::nullopt;
  return bytes ? fmt::format(",\"device_peak_bytes\":{}", *bytes) : "";
}

void print(const Entry& entry, const Settings& settings, double seconds_per_step) {
  const Workload& w = *entry.workload;
  const auto samples = static_cast<double>(bench::make_batch(w).size() * w.micro_batches);
  fmt::print(
      "{{\"peer\":\"{}{}\",\"workload\":\"{}\",\"device\":\"{}\",\"precision\":\"{}\","
      "\"threads\":{},\"us_per_step\":{:.1f},"
      "\"samples_per_s\":{:.0f},\"final_loss\":{}{}}}\n",
      prefix_of(entry.peer),
      entry.peer,
      w.name,
      settings.device,
      settings.precision,
      at::get_num_threads(),
      seconds_per_step * 1e6,
      samples / seconds_per_step,
      entry.contender->loss(),
      peak_of(settings.device));
}

void time_and_print(const std::vector<std::string>& names,
                    const std::vector<std::string>& backends,
                    const Settings& settings,
                    const Rounds& rounds) {
  std::vector<Entry> entries;
  for (const std::string& name : names) {
    const Workload& w = bench::workload(name);
    for (const std::string& peer : backends) {
      entries.push_back({&w, peer, bench::make_contender(w, peer, settings, rounds.updates()), {}});
    }
  }
  time_in_turns(entries, rounds);
  for (const Entry& entry : entries) {
    print(entry, settings, median(entry.seconds) / static_cast<double>(rounds.steps));
    fmt::print(stderr, "{}", entry.contender->timeline());
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> names = {"mlp"};
  std::vector<std::string> backends = {"libtorch", "eager", "traced", "fit"};
  Settings settings;
  Rounds rounds;
  bool json = true;
  CLI::App app("Times one training step.");
  app.add_option("--workload", names, "the step; several are timed in turns; zoo: all of the zoo")
      ->check(CLI::IsMember(bench::workload_names()) | CLI::IsMember({"zoo"}));
  app.add_option("--threads", settings.threads, "of tensor operators; auto: a fit chooses them")
      ->transform(CLI::Transformer(std::map<std::string, int>{{"auto", 0}}))
      ->check(CLI::NonNegativeNumber);
  app.add_option("--exact", settings.exact, "0: rondo's steps may round differently, for speed")
      ->check(CLI::IsMember({"0", "1"}));
  app.add_option(
      "--timeline", settings.timed_replays, "replays to time, instruction by instruction");
  CLI::Option* const chosen = app.add_option("--backend", backends, "who is timed, in turns");
  chosen->check(
      CLI::IsMember({"libtorch", "graph", "eager", "traced", "traced-interpreter", "fit"}));
  app.add_option("--device", settings.device, "cpu or cuda")->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--precision", settings.precision, "of the forward pass, by autocast")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  app.add_option("--copies", settings.copies, "of the batch in memory, which steps go round")
      ->check(CLI::PositiveNumber);
  app.add_option("--warm-up", rounds.warm_up, "updates before the clock starts")
      ->check(CLI::PositiveNumber);
  app.add_option("--steps", rounds.steps, "updates of a round")->check(CLI::PositiveNumber);
  app.add_option("--rounds", rounds.count, "of which the median counts")
      ->check(CLI::PositiveNumber);
  app.add_flag("--json", json, "one JSON object a line, which is the only form");
  CLI11_PARSE(app, argc, argv);
  if (settings.threads == 0) {
    if (chosen->count() > 0 && backends != std::vector<std::string>{"fit"}) {
      fmt::print(stderr, "--threads=auto: only a fit chooses its threads; give --backend=fit\n");
      return 2;
    }
    backends = {"fit"};
  } else {
    at::set_num_threads(settings.threads);
  }
  try {
    if (names == std::vector<std::string>{"zoo"}) {
      for (const Workload& w : bench::zoo()) {
        time_and_print({w.name}, backends, settings, rounds);  // one after the other: less memory
      }
    } else {
      time_and_print(names, backends, settings, rounds);
    }
  } catch (const rondo::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
