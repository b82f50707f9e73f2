// Times validate_all over many checkpoints of the quickstart's model, beside a loop written by hand
// with LibTorch that loads and evaluates as many files, and beside its evaluations alone; prints
// JSON, in seconds a checkpoint: on the clock, and of processors.
//
//   validate_bench --checkpoints=500 --rounds=3 --dir=/var/tmp
//
// The loop by hand has its batches ready in memory, and files with the weights alone; rondo's hold
// AdamW's state, rng and positions as well, and every byte of them is checked.

#include <fmt/format.h>
#include <torch/torch.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint_file.h"
#include "core/file_system.h"
#include "data/generated/glyphs.h"
#include "models/builtin/mlp.h"
#include "optim/adam.h"
#include "rondo.h"

namespace {

using namespace rondo;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// Of one checkpoint, in seconds.
struct Cost {
  double wall = 0.0;
  double cpu = 0.0;  ///< of all threads
};

/// The median round of each.
Cost cost_of(int rounds, int count, const std::function<void()>& work) {
  std::vector<double> walls;
  std::vector<double> cpus;
  for (int i = 0; i < rounds; ++i) {
    const auto start = Clock::now();
    const std::clock_t cpu = std::clock();
    work();
    walls.push_back(std::chrono::duration<double>(Clock::now() - start).count() / count);
    cpus.push_back(static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC / count);
  }
  std::sort(walls.begin(), walls.end());
  std::sort(cpus.begin(), cpus.end());
  return {walls[walls.size() / 2], cpus[cpus.size() / 2]};
}

TextLog quiet() {
  return TextLog::to([](LogLevel, std::string_view) {});
}

TrainerOptions run_options(const fs::path& dir) {
  TrainerOptions options;
  options.model_dir = dir / "run";
  options.seed = 1;
  options.model = use<Mlp>({{784, 256, 10}});
  return options;
}

DataLoader validation_data() {
  LoaderOptions batches;
  batches.batch_size = 200;
  return DataLoader("val", use<Glyphs>({2000, "val"}), batches);
}

torch::nn::Sequential network() {
  return torch::nn::Sequential(
      torch::nn::Linear(784, 256), torch::nn::ReLU(), torch::nn::Linear(256, 10));
}

/// A checkpoint of one update, copied under the names of `count`; and the weights for the loop by
/// hand.
void write_files(const fs::path& dir, int count) {
  TrainerOptions options = run_options(dir);
  options.optimizer = use<AdamW>({2e-3});
  options.loop.max_steps = 1;
  options.checkpoint.steps = 1;
  Trainer(options, quiet()).fit(validation_data());
  const StateDict first = read_checkpoint(dir / "run/checkpoint_1.pt");
  torch::nn::Sequential module = network();
  for (int i = 0; i < count; ++i) {
    fs::copy_file(dir / "run/checkpoint_1.pt", dir / fmt::format("checkpoint_{}.pt", i));
    torch::save(module, (dir / fmt::format("weights_{}.pt", i)).string());
  }
}

/// The loop that a good C++ user writes.
class ByHand {
 public:
  explicit ByHand(fs::path dir) : dir_(std::move(dir)) {
    module_->eval();
    const DataLoader data = validation_data();
    const auto stream = data.stream({}, 0);
    while (const auto batch = stream->next()) {
      batches_.emplace_back((*batch)["image"].flatten(1), (*batch)["label"]);
    }
  }

  void load(int i) { torch::load(module_, (dir_ / fmt::format("weights_{}.pt", i)).string()); }

  void evaluate() {
    const torch::NoGradGuard no_grad;
    double loss = 0.0;
    int64_t right = 0;
    for (const auto& [image, label] : batches_) {
      const torch::Tensor logits = module_->forward(image);
      loss += torch::nn::functional::cross_entropy(logits, label).item<double>();
      right += logits.argmax(1).eq(label).sum().item<int64_t>();
    }
    results_.emplace_back(loss / static_cast<double>(batches_.size()), right);
  }

 private:
  fs::path dir_;
  torch::nn::Sequential module_ = network();
  std::vector<std::pair<torch::Tensor, torch::Tensor>> batches_;
  std::vector<std::pair<double, int64_t>> results_;
};

}  // namespace

int main(int argc, char** argv) {
  int count = 500;
  int rounds = 3;
  std::string parent = fs::temp_directory_path().string();
  CLI::App app("Times validate_all.");
  app.add_option("--checkpoints", count, "How many")->check(CLI::PositiveNumber);
  app.add_option("--rounds", rounds, "Each is timed this often; the median counts")
      ->check(CLI::PositiveNumber);
  app.add_option("--dir", parent, "Where files go");
  CLI11_PARSE(app, argc, argv);

  const fs::path dir = fs::path(parent) / fmt::format("rondo_bench_{}", ::getpid());
  fs::create_directories(dir);
  write_files(dir, count);
  ByHand loop(dir);
  Trainer trainer(run_options(dir), quiet());
  const DataLoader data = validation_data();
  ValidateAllOptions force;
  force.force = true;
  const std::vector<std::string> globs = {(dir / "checkpoint_*.pt").string()};
  const std::pair<const char*, std::function<void()>> subjects[] = {
      {"validate_all", [&] { trainer.validate_all({data}, globs, force); }},
      {"rondo_evaluation",
       [&] {
         for (int i = 0; i < count; ++i) {
           trainer.validate(data, LoadFrom::nothing());
         }
       }},
      {"libtorch",
       [&] {
         for (int i = 0; i < count; ++i) {
           loop.load(i);
           loop.evaluate();
         }
       }},
      {"libtorch_evaluation", [&] {
         for (int i = 0; i < count; ++i) {
           loop.evaluate();
         }
       }}};
  fmt::print("{{\"checkpoints\": {}, \"threads\": {}", count, at::get_num_threads());
  for (const auto& [name, work] : subjects) {
    const Cost cost = cost_of(rounds, count, work);
    fmt::print(", \"{0}_s\": {1:.6f}, \"{0}_cpu_s\": {2:.6f}", name, cost.wall, cost.cpu);
  }
  const auto megabytes = [&](const char* name) {
    return static_cast<double>(fs::file_size(dir / name)) / 1e6;
  };
  fmt::print(", \"checkpoint_mb\": {:.3f}, \"libtorch_file_mb\": {:.3f}}}\n",
             megabytes("checkpoint_0.pt"),
             megabytes("weights_0.pt"));
  fs::remove_all(dir);
  return 0;
}
