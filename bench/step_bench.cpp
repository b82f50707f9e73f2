// Times one training step: rondo's backends and the loop that one writes by hand with torch::nn and
// torch::optim. Same initial weights (one seed), same batch; prints a JSON line for each.
//
//   step_bench --workload=mlp --threads=1 --steps=400 --rounds=5
//
// They take turns, round by round, in one process; the median round counts.

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/torch.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "callbacks/reproducibility_callback.h"
#include "data/tensor_dataset.h"
#include "loops/fit_run.h"
#include "models/from_module.h"
#include "optim/optimizers.h"
#include "trainer/trainer.h"

namespace {

using namespace rondo;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kSeed = 1;
constexpr int64_t kBatchesOfAPass = 256;
constexpr int64_t kWarmUp = 20;  // updates before the clock starts; captures are among them

struct Workload {
  std::string name;
  std::vector<int64_t> sizes;  // of an MLP with ReLU
  int64_t batch;
  bool adam;
};

const std::vector<Workload> kWorkloads = {{"tiny", {16, 32, 32, 10}, 32, false},
                                          {"mlp", {784, 256, 256, 10}, 64, false},
                                          {"adam", {784, 256, 256, 10}, 64, true}};

torch::nn::Sequential make_net(const Workload& w) {
  torch::nn::Sequential net;
  for (size_t i = 0; i + 1 < w.sizes.size(); ++i) {
    net->push_back(torch::nn::Linear(w.sizes[i], w.sizes[i + 1]));
    if (i + 2 < w.sizes.size()) {
      net->push_back(torch::nn::ReLU());
    }
  }
  return net;
}

/// The one batch that everybody repeats, `times` over.
TensorMap make_data(const Workload& w, int64_t times = 1) {
  torch::manual_seed(kSeed + 1);
  return {{"x", torch::rand({w.batch, w.sizes.front()}).repeat({times, 1})},
          {"label", torch::randint(w.sizes.back(), {w.batch}).repeat({times})}};
}

/// Who is timed.
class Contender {
 public:
  virtual ~Contender() = default;
  virtual void train(int64_t updates) = 0;
  virtual double loss() const = 0;
};

class HandWritten final : public Contender {
 public:
  explicit HandWritten(const Workload& w) : data_(make_data(w)) {
    torch::manual_seed(kSeed);
    net_ = make_net(w);
    if (w.adam) {
      optimizer_ = std::make_unique<torch::optim::AdamW>(net_->parameters(),
                                                         torch::optim::AdamWOptions(1e-3));
    } else {
      optimizer_ = std::make_unique<torch::optim::SGD>(
          net_->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
    }
  }

  void train(int64_t updates) override {
    for (int64_t i = 0; i < updates; ++i) {
      optimizer_->zero_grad();
      loss_ = torch::nn::functional::cross_entropy(net_->forward(data_["x"]), data_["label"]);
      loss_.backward();
      optimizer_->step();
    }
  }

  double loss() const override { return loss_.item<double>(); }

 private:
  TensorMap data_;
  torch::nn::Sequential net_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  torch::Tensor loss_;
};

class Rondo final : public Contender {
 public:
  Rondo(const Workload& w, const std::string& mode, int threads, int64_t updates)
      : directory_(std::filesystem::temp_directory_path() /
                   fmt::format("step_bench_{}_{}", mode, ::getpid())) {
    TrainerOptions options;
    options.model_dir = directory_;
    options.seed = kSeed;
    options.model = from_module([w] { return make_net(w); }, "x", cross_entropy("label"));
    Sgd::Options sgd;
    sgd.lr = 0.01;
    sgd.momentum = 0.9;
    options.optimizer = w.adam ? use<AdamW>({1e-3}) : use<Sgd>(sgd);
    options.backend.mode = mode;
    options.backend.threads = threads;
    options.loop.max_steps = updates;
    options.loop.eval_frequency = 0;
    options.logging.log_steps = 0;
    options.logging.log_level = "error";
    LoaderOptions batches;
    batches.batch_size = w.batch;
    trainer_ = std::make_unique<Trainer>(options);
    run_ = trainer_->start_fit(
        DataLoader("train", from_tensors(make_data(w, kBatchesOfAPass)), batches),
        {},
        LoadFrom::nothing());
    run_->advance();  // begins the stretch; trains nothing yet
  }

  ~Rondo() override {
    run_.reset();
    trainer_.reset();
    std::filesystem::remove_all(directory_);
  }

  void train(int64_t updates) override {
    const RngScope rng(*trainer_);
    for (int64_t i = 0; i < updates; ++i) {
      run_->advance();
    }
  }

  double loss() const override {
    return trainer_->state().last_metrics.number("loss").value_or(-1.0);
  }

 private:
  std::filesystem::path directory_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<FitRun> run_;
};

struct Entry {
  std::string peer;
  std::unique_ptr<Contender> contender;
  std::vector<double> seconds;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void time_in_turns(std::vector<Entry>& entries, int64_t steps, int rounds) {
  for (Entry& entry : entries) {
    entry.contender->train(kWarmUp);
  }
  for (int round = 0; round < rounds; ++round) {
    for (Entry& entry : entries) {
      const Clock::time_point start = Clock::now();
      entry.contender->train(steps);
      entry.seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string name = "mlp";
  int threads = 1;
  int64_t steps = 400;
  int rounds = 5;
  CLI::App app("Times one training step.");
  app.add_option("--workload", name, "tiny, mlp or adam");
  app.add_option("--threads", threads, "of tensor operators");
  app.add_option("--steps", steps, "updates of a round");
  app.add_option("--rounds", rounds, "of which the median counts");
  CLI11_PARSE(app, argc, argv);
  const auto workload = std::find_if(
      kWorkloads.begin(), kWorkloads.end(), [&](const Workload& w) { return w.name == name; });
  if (workload == kWorkloads.end()) {
    fmt::print(stderr, "there is no workload \"{}\"; there are tiny, mlp and adam\n", name);
    return 2;
  }
  at::set_num_threads(threads);
  const int64_t updates = kWarmUp + steps * rounds;
  std::vector<Entry> entries;
  entries.push_back({"libtorch", std::make_unique<HandWritten>(*workload), {}});
  entries.push_back(
      {"rondo-eager", std::make_unique<Rondo>(*workload, "eager", threads, updates), {}});
  entries.push_back(
      {"rondo-traced", std::make_unique<Rondo>(*workload, "traced", threads, updates), {}});
  time_in_turns(entries, steps, rounds);
  for (const Entry& entry : entries) {
    const double per_step = median(entry.seconds) / static_cast<double>(steps);
    fmt::print(
        "{{\"peer\":\"{}\",\"workload\":\"{}\",\"threads\":{},\"us_per_step\":{:.1f},\"samples_per_"
        "s\":{:.0f},\"final_loss\":{}}}\n",
        entry.peer,
        name,
        threads,
        per_step * 1e6,
        static_cast<double>(workload->batch) / per_step,
        entry.contender->loss());
  }
  return 0;
}
