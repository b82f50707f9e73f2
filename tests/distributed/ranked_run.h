#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/factory.h"
#include "core/state_dict.h"
#include "data/data_loader.h"
#include "distributed/communicator.h"
#include "models/model.h"
#include "optim/optimizer.h"
#include "sparsity/sparsity_options.h"
#include "trainer/trainer_options.h"

namespace rondo::test {

/// A short training that ranks share.
struct RankedRun {
  std::string name;
  Factory<Model> model;
  Factory<Optimizer> optimizer;
  std::string mode = "traced";
  int64_t accumulation = 1;
  std::optional<int64_t> micro_batch = {};
  std::optional<double> max_norm = {};
  int64_t samples = 48;
  std::string precision = "fp32";
  bool measures = false;    // accuracy of training
  bool is_sharded = false;  // the optimizer
  SparsityOptions sparsity = {};
};

Factory<Model> mlp(double dropout);

Factory<Optimizer> adamw();

Factory<Optimizer> momentum();

/// Small images of three classes.
DataLoader ranked_images(int64_t samples, int64_t batch_size);

/// One for each kind of model, accumulation, clipping, precision and end of a pass.
std::vector<RankedRun> ranked_runs();

TrainerOptions options_of(const RankedRun& run,
                          int64_t virtual_ranks,
                          const std::filesystem::path& dir);

/// Model, optimizer, random numbers, counters and the last loss, after training.
/// \param saved  where the first rank leaves its last checkpoint; "": nowhere
StateDict trained(const RankedRun& run,
                  int64_t virtual_ranks,
                  const std::shared_ptr<Communicator>& communicator,
                  const LoadFrom& from = LoadFrom::nothing(),
                  int64_t updates = 8,
                  const std::filesystem::path& saved = {});

StateDict in_one_process(const RankedRun& run, int64_t virtual_ranks);

}  // namespace rondo::test
