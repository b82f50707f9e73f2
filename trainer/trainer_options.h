#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "callbacks/algorithm.h"
#include "callbacks/callback.h"
#include "callbacks/core/autorestart_options.h"
#include "callbacks/core/checkpoint_options.h"
#include "callbacks/core/logging_options.h"
#include "callbacks/core/loop.h"
#include "callbacks/core/precision_options.h"
#include "core/factory.h"
#include "distributed/communicator.h"
#include "distributed/distributed_options.h"
#include "loggers/logger.h"
#include "loops/train_step.h"
#include "metrics/metric.h"
#include "models/model.h"
#include "optim/optimizer.h"
#include "optim/scheduler.h"
#include "sparsity/sparsity_options.h"

namespace rondo {

/// What an evaluation does when it finds no checkpoint and the model's weights are untrained.
enum class UntrainedWeights {
  Warn,    ///< evaluates them with a warning
  Refuse,  ///< throws ConfigError
  Accept   ///< evaluates them
};

/// One of several optimizers, with the parameters that it trains.
struct NamedOptimizer {
  std::string name;                 ///< letters, digits, "_" and "-"
  std::vector<std::string> params;  ///< globs of parameter names; no two optimizers pick the same
  Factory<Optimizer> optimizer;
};

/// The options of a run, `[trainer.init]` in a config file: an option's path is its key there.
/// Required: `model_dir` and `model`. Without an optimizer the Trainer only evaluates.
struct TrainerOptions {
  std::filesystem::path model_dir = {};  ///< where checkpoints, logs and artifacts go
  /// For file names, loggers and records; "": the environment's RUN_NAME, else the last part of
  /// model_dir. A checkpoint stores it; resuming under another name logs a warning.
  std::string run_name = {};
  Factory<Model> model = {};
  std::vector<std::string> freeze = {};         ///< globs of parameters that are not trained
  Factory<Optimizer> optimizer = {};            ///< the only one, whose name is "default"
  std::vector<NamedOptimizer> optimizers = {};  ///< or several, each over its own parameters
  Factory<TrainStep> step = {};  ///< the body of a training step; absent: StandardStep
  std::vector<Factory<Scheduler>> schedulers = {};
  std::vector<Factory<Metric>> metrics = {};        ///< of validations, besides the model's
  std::vector<Factory<Metric>> train_metrics = {};  ///< of training, logged at log steps
  BackendOptions backend = {};
  std::optional<DistributedOptions> distributed = {};  ///< absent: one process, unless launched
  PrecisionOptions precision = {};
  SparsityOptions sparsity = {};
  LoopOptions loop = {};
  CheckpointOptions checkpoint = {};
  LoggingOptions logging = {};
  std::vector<Factory<Algorithm>> algorithms = {};   ///< called before the callbacks
  std::vector<AlgorithmPass> algorithm_passes = {};  ///< order the algorithms at each event
  std::vector<Factory<Callback>> callbacks = {};     ///< in call order
  std::vector<Factory<Logger>> loggers = {};         ///< called after the callbacks
  std::optional<uint64_t> seed = {};
  AutorestartOptions autorestart = {};
  std::map<std::string, Factory<CoreCallback>> slots =
      {};  ///< replacements of core callbacks, by slot name
  bool (*leaves_out)(const Callback&) =
      nullptr;  ///< true for a global callback that a dry run does not call
  std::shared_ptr<Communicator> communicator =
      {};  ///< ranks that are connected already; null: from the environment
  UntrainedWeights untrained = UntrainedWeights::Warn;  ///< the command line refuses them

  std::string config_text =
      {};  ///< the resolved config as TOML, saved with the run; "" when built in code
  std::map<std::string, std::string> origins =
      {};  ///< where a config file sets a slot, such as {"loop", "run.toml:4:1"}; for messages
};

}  // namespace rondo
