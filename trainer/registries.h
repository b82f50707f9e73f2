#pragma once

#include "callbacks/algorithm.h"
#include "callbacks/callback.h"
#include "core/registry.h"
#include "data/dataset.h"
#include "loggers/logger.h"
#include "loops/train_step.h"
#include "metrics/metric.h"
#include "models/losses/criterion.h"
#include "models/model.h"
#include "optim/optimizer.h"
#include "optim/scheduler.h"
#include "sparsity/algorithm.h"

namespace rondo {

/// Everything that a config can name, one table per family. Cannot be moved: option tables point
/// into it.
struct Registries {
  Registries() = default;
  Registries(const Registries&) = delete;
  Registries& operator=(const Registries&) = delete;

  Registry<Criterion> losses{"loss function"};
  Registry<Model> models{"model"};
  Registry<DataSource> datasets{"dataset"};
  Registry<Optimizer> optimizers{"optimizer"};
  Registry<Scheduler> schedulers{"scheduler"};
  Registry<SparsityAlgorithm> sparsity_algorithms{"sparsity algorithm"};
  Registry<TrainStep> steps{"step"};
  Registry<Metric> metrics{"metric"};
  Registry<Algorithm> algorithms{"algorithm"};
  Registry<Callback> callbacks{"callback"};
  Registry<Logger> loggers{"logger"};
  Registry<CoreCallback> slots{"core callback"};
};

/// Adds all of rondo's own components.
void register_builtins(Registries& registries);

/// Opens a plugin, a shared library made with RONDO_PLUGIN, and lets it add its components. It
/// stays open for the life of the process. \throws UsageError  when the file cannot be opened or is
/// not a plugin, with the loader's reason
void load_plugin(const std::filesystem::path& library, Registries& registries);

}  // namespace rondo
