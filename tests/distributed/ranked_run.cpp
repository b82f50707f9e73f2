#include "ranked_run.h"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/functional.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include "core/random.h"
#include "data/tensor_dataset.h"
#include "forked_ranks.h"
#include "metrics/accuracy.h"
#include "models/from_module.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "sparsity/algorithms.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

namespace rondo::test {

namespace nn = torch::nn;

Factory<Model> mlp(double dropout) {
  return from_module(
      [dropout] {
        return nn::Sequential(
            nn::Flatten(), nn::Linear(36, 16), nn::ReLU(), nn::Dropout(dropout), nn::Linear(16, 3));
      },
      "x",
      cross_entropy("label"));
}

namespace {

Factory<Model> conv_net() {
  return from_module(
      [] {
        return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 4, 3)),
                              nn::BatchNorm2d(4),
                              nn::ReLU(),
                              nn::Flatten(),
                              nn::Dropout(0.2),
                              nn::Linear(64, 3));
      },
      "x",
      cross_entropy("label"));
}

/// What it computes depends on the data, so that ranks replay different variants of a step.
Factory<Model> branching() {
  return from_module(
      [] {
        return nn::Sequential(nn::Functional([](const at::Tensor& x) {
                                return x.max().gt(2.4).item<bool>() ? x * 0.5 : x;
                              }),
                              nn::Flatten(),
                              nn::Linear(36, 3));
      },
      "x",
      cross_entropy("label"));
}

/// Masks change in most updates.
SparsityOptions changing_masks(const Factory<SparsityAlgorithm>& algorithm) {
  SparsityOptions options = {0.5};
  options.algorithm = algorithm;
  options.update = {2, 0, 7};
  return options;
}

}  // namespace

DataLoader ranked_images(int64_t samples, int64_t batch_size) {
  KeyedRandom random(3);
  std::vector<float> x;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < samples; ++i) {
    for (int64_t j = 0; j < 36; ++j) {
      x.push_back(static_cast<float>(random.normal()));
    }
    labels.push_back(static_cast<int64_t>(random.below(3)));
  }
  LoaderOptions options;
  options.batch_size = batch_size;
  options.shuffle = true;
  options.prefetch = 0;
  return DataLoader(from_tensors({{"x", torch::tensor(x).reshape({samples, 1, 6, 6})},
                                  {"label", torch::tensor(labels)}}),
                    options);
}

TrainerOptions options_of(const RankedRun& run,
                          int64_t virtual_ranks,
                          const std::filesystem::path& dir) {
  TrainerOptions options;
  options.model_dir = dir;
  options.seed = 7;
  options.model = run.model;
  options.optimizer = run.optimizer;
  options.backend.mode = run.mode;
  options.backend.on_refusal = "error";
  options.loop.max_steps = 8;
  options.loop.grad_accum_steps = run.accumulation;
  options.loop.device_train_microbatch_size = run.micro_batch;
  options.precision.max_gradient_norm = run.max_norm;
  options.precision.dtype = run.precision;
  options.precision.on_unsupported = "emulate";
  options.sparsity = run.sparsity;
  options.checkpoint.steps = 0;
  options.logging.log_steps = 3;
  if (run.measures) {
    options.train_metrics = {use<Accuracy>()};
  }
  options.distributed.emplace();
  options.distributed->virtual_ranks = virtual_ranks;
  options.distributed->shard_optimizer = run.is_sharded;
  return options;
}

StateDict trained(const RankedRun& run,
                  int64_t virtual_ranks,
                  const std::shared_ptr<Communicator>& communicator,
                  const LoadFrom& from,
                  int64_t updates,
                  const std::filesystem::path& saved) {
  const TempDir dir;
  TrainerOptions options = options_of(run, virtual_ranks, dir.path());
  options.loop.max_steps = updates;
  options.communicator = communicator;
  std::vector<MemoryLogger::Entry> logged;
  options.loggers = {use<MemoryLogger>({&logged})};
  options.checkpoint.save_final_checkpoint = !saved.empty();
  std::vector<std::string> warnings;
  Trainer trainer(options, quiet_log(&warnings));
  trainer.fit(ranked_images(run.samples, 16), {}, from);
  StateDict bits = bits_of(trainer);
  if (!saved.empty() && communicator->rank() == 0) {
    std::filesystem::copy_file(*trainer.state().last_checkpoint, saved);
  }
  for (const auto& [name, value] : trainer.state().last_metrics.items()) {
    if (name == "loss" || name == "accuracy") {
      bits.set("last_" + name, *trainer.state().last_metrics.number(name));
    }
  }
  return bits;
}

StateDict in_one_process(const RankedRun& run, int64_t virtual_ranks) {
  return on_processes(
      1, [&](const auto& communicator) { return trained(run, virtual_ranks, communicator); })[0];
}

Factory<Optimizer> adamw() {
  return use<AdamW>({1e-2});
}

Factory<Optimizer> momentum() {
  Sgd::Options options;
  options.lr = 0.05;
  options.momentum = 0.9;
  return use<Sgd>(options);
}

std::vector<RankedRun> ranked_runs() {
  std::vector<RankedRun> runs;
  runs.push_back({"mlp with dropout, AdamW", mlp(0.3), adamw()});
  runs.push_back({"mlp, SGD, clipped", mlp(0.0), momentum(), "traced", 1, {}, 0.05});
  runs.push_back({"mlp, accumulation of 2", mlp(0.3), adamw(), "traced", 2});
  runs.push_back({"mlp, micro-batches", mlp(0.3), momentum(), "traced", 1, 2});
  runs.push_back({"conv net with batch norm", conv_net(), momentum()});
  runs.push_back({"conv net, accumulation, clipped", conv_net(), adamw(), "traced", 2, {}, 0.05});
  runs.push_back({"uneven last batch", conv_net(), adamw(), "traced", 1, {}, {}, 46});
  runs.push_back({"fewer samples than virtual ranks", mlp(0.3), adamw(), "traced", 1, {}, {}, 34});
  runs.push_back({"bf16", mlp(0.3), adamw(), "traced", 1, {}, 0.05, 48, "bf16_pure"});
  runs.push_back({"train metrics", mlp(0.3), adamw(), "traced", 1, {}, {}, 34, "fp32", true});
  runs.push_back({"branch on the data", branching(), adamw()});
  RankedRun sparse{"SET", mlp(0.3), adamw()};
  sparse.sparsity = changing_masks(use<SparseEvolutionaryTraining>());
  runs.push_back(sparse);
  return runs;
}

}  // namespace rondo::test
