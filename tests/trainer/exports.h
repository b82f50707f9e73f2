#pragma once

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <string>

#include "checkpoint/checkpoint_file.h"
#include "core/file_system.h"
#include "models/from_module.h"
#include "optim/adam.h"
#include "optim/schedulers.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/export_step.h"

namespace rondo::test {

inline constexpr int64_t kUpdates = 11;

/// Dropout draws random numbers; Adam has state; the schedule is a host call.
inline TrainerOptions options_for(const TempDir& dir, int64_t accumulation = 1) {
  TrainerOptions options = tiny_options(dir / "run");
  options.backend.mode = "traced";
  options.model = from_module(
      [] {
        return torch::nn::Sequential(
            torch::nn::Linear(4, 8), torch::nn::Dropout(0.4), torch::nn::Linear(8, 3));
      },
      "x",
      cross_entropy("label"));
  options.optimizer = use<AdamW>({0.02});
  CosineDecayLR::Options schedule;
  schedule.initial_learning_rate = 0.02;
  schedule.total_iters = kUpdates - 2;
  options.schedulers = {use<CosineDecayLR>(schedule)};
  options.precision.max_gradient_norm = 0.5;
  options.loop.max_steps = kUpdates;
  options.loop.eval_frequency = 0;
  options.loop.grad_accum_steps = accumulation;
  return options;
}

/// 12 samples in batches of 2: groups of 1, 2 and 3 are never cut short.
inline DataLoader loader() {
  return tiny_loader("train", 12, 2);
}

inline RunConfig run_of(const TrainerOptions& options) {
  RunConfig run;
  run.init = options;
  run.fit = RunConfig::Fit{loader(), {}, {}};
  return run;
}

inline std::string export_to(const TempDir& dir, const TrainerOptions& options) {
  const std::string path = (dir / "out.step").string();
  write_checkpoint(*real_file_system(), path, to_state(export_step(run_of(options))));
  return path;
}

}  // namespace rondo::test
