#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "callbacks/core/checkpoint_options.h"
#include "checkpoint/checkpoint_index.h"
#include "core/config_value.h"
#include "data/data_loader.h"
#include "loops/predict.h"
#include "trainer/registries.h"
#include "trainer/trainer_options.h"

namespace rondo {

/// What a config file asks for: the run and what to do with it.
struct RunConfig {
  struct Fit {
    DataLoader train;
    Loaders val;
    LoadFrom from;
  };

  struct Validate {
    DataLoader loader;
    LoadFrom from;
    std::optional<int64_t> subset_num_batches = {};  ///< of the loader; nothing: as the loop says
  };

  struct ValidateAll {
    Loaders loaders;
    std::optional<std::vector<std::string>> checkpoints;  ///< globs; absent: all indexed ones
    std::optional<int64_t> subset_num_batches = {};       ///< of each loader
  };

  struct Predict {
    DataLoader loader;
    LoadFrom from;
    PredictOptions options = {};
  };

  TrainerOptions init;
  std::optional<Fit> fit;
  std::optional<Validate> validate;
  std::optional<ValidateAll> validate_all;
  std::optional<Predict> predict;
  /// The file itself, after comments that say what a command line changed; "" where it was
  /// read from elsewhere.
  std::string as_written;
};

/// Checks the whole tree of a config file and returns its phases: several for `[[trainer]]`, one
/// for `[trainer]`. Run them in order, each with its own Trainer. Builds nothing. A phase's
/// `init.config_text` spells out every default.
/// \param registries  with the plugins already loaded; must outlive the result
/// \throws ConfigError  with every fault of the file
std::vector<RunConfig> read_phases(const ConfigValue& root, const Registries& registries);

/// The same for a file of one phase.
/// \throws ConfigError  with every fault of the file; a second phase is a fault
RunConfig read_run_config(const ConfigValue& root, const Registries& registries);

/// The `plugins` of a config, which must be loaded before `read_run_config`.
/// \throws ConfigError  when it is not a list of paths
std::vector<std::filesystem::path> plugins_of(const ConfigValue& root);

/// The keys of `[trainer.init]`: one table for schema, errors and docs.
KeyTable<TrainerOptions> trainer_keys(const Registries& registries);

/// The options that a table like `[trainer.init]` stands for, but for the model, which it lacks.
/// \throws ConfigError  with every fault
TrainerOptions read_options(ConfigTable init, const Registries& registries);

/// The options of an empty `[trainer.init]`. Unlike `TrainerOptions()` they include the default
/// callbacks and loggers, which a file can remove.
TrainerOptions config_defaults(const Registries& registries);

/// The checkpoints that a run has saved, and where it will save more.
CheckpointIndex index_of(const RunConfig& run);

/// The checkpoints that its `validate_all` evaluates, which it has.
/// \throws IoError  when a glob matches nothing
Paths checkpoints_to_validate(const RunConfig& run);

}  // namespace rondo
