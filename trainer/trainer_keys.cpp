#include <string>

#include "core/options.h"
#include "core/registry.h"
#include "trainer/component_options.h"
#include "trainer/distributed_keys.h"
#include "trainer/run_config.h"
#include "trainer/slot_keys.h"
#include "trainer/sparsity_keys.h"

namespace rondo {

namespace {

KeyTable<LoggingOptions> logging_keys() {
  KeyTable<LoggingOptions> keys;
  keys.key("log_steps",
           &LoggingOptions::log_steps,
           at_least(0),
           "how far apart log steps are, a fraction being one of the run; 0: only the last update")
      .key("log_level",
           &LoggingOptions::log_level,
           one_of({"debug", "info", "warning", "error"}),
           "least severe level of messages that the console shows");
  return keys;
}

KeyTable<AutorestartOptions> autorestart_keys() {
  KeyTable<AutorestartOptions> keys;
  keys.key("max_num_restarts",
           &AutorestartOptions::max_num_restarts,
           at_least(0),
           "starts in a row that may fail without progress; 0: no limit");
  return keys;
}

/// The run, and what is trained how.
void add_training_keys(KeyTable<TrainerOptions>& keys, const Registries& registries) {
  keys.key("model_dir", &TrainerOptions::model_dir, "directory of checkpoints and logs").required();
  keys.key("run_name",
           &TrainerOptions::run_name,
           "name of the run; empty: the environment's RUN_NAME, else the last part of model_dir");
  keys.key_of("model",
              &TrainerOptions::model,
              NamedComponentOption<Model>(registries.models),
              "the model to train")
      .required();
  keys.key(
      "freeze", &TrainerOptions::freeze, "globs of the model's parameters that keep their values");
  keys.key_of("optimizer",
              &TrainerOptions::optimizer,
              ComponentOption<Optimizer>(registries.optimizers),
              "the optimizer that updates the model")
      .key_of("optimizers",
              &TrainerOptions::optimizers,
              OptimizersOption(registries.optimizers),
              "several optimizers by name, each with params, the globs of its parameters")
      .key_of("step",
              &TrainerOptions::step,
              ComponentOption<TrainStep>(registries.steps),
              "the body of a training step; absent: forward, backward, update")
      .key_of("schedulers",
              &TrainerOptions::schedulers,
              ComponentListOption<Scheduler>(registries.schedulers),
              "schedules of the optimizer's numbers, such as lr")
      .key_of("metrics",
              &TrainerOptions::metrics,
              ComponentListOption<Metric>(registries.metrics),
              "what a validation measures in addition to the model's own metrics")
      .key_of("train_metrics",
              &TrainerOptions::train_metrics,
              ComponentListOption<Metric>(registries.metrics),
              "what is measured of the training batches between two log steps");
}

void add_slot_keys(KeyTable<TrainerOptions>& keys, const Registries& registries) {
  keys.table("backend", &TrainerOptions::backend, backend_keys(), "how and where steps run");
  keys.add(distributed_key());
  keys.table("precision",
             &TrainerOptions::precision,
             precision_keys(),
             "number format and clipping of gradients");
  keys.add(sparsity_key(registries));
  keys.table(
          "loop", &TrainerOptions::loop, loop_keys(), "length of the run, validation, accumulation")
      .table("checkpoint", &TrainerOptions::checkpoint, checkpoint_keys(), "saving and loading")
      .table("logging", &TrainerOptions::logging, logging_keys(), "messages and log steps");
}

void add_named_keys(KeyTable<TrainerOptions>& keys, const Registries& registries) {
  keys.key_of("algorithms",
              &TrainerOptions::algorithms,
              AlgorithmsOption(registries.algorithms),
              "changes of how the model is trained, such as MixUp, in their order")
      .key_of("callbacks",
              &TrainerOptions::callbacks,
              ListWithDefaults<Callback>(registries.callbacks, {"LogOptimizerParamGroup"}),
              "callbacks, in the order in which they are called")
      .key_of("loggers",
              &TrainerOptions::loggers,
              ListWithDefaults<Logger>(registries.loggers,
                                       {"ProgressLogger", "JsonlLogger", "RecordLogger"}),
              "loggers that get the metrics")
      .key("seed", &TrainerOptions::seed, at_least(0), "seed of every random number of the run")
      .table("autorestart",
             &TrainerOptions::autorestart,
             autorestart_keys(),
             "limit of restarts without progress")
      .key_of("slots",
              &TrainerOptions::slots,
              SlotsOption(registries.slots),
              "core callbacks of plugins that replace rondo's");
}

}  // namespace

KeyTable<TrainerOptions> trainer_keys(const Registries& registries) {
  KeyTable<TrainerOptions> keys;
  add_training_keys(keys, registries);
  add_slot_keys(keys, registries);
  add_named_keys(keys, registries);
  return keys;
}

}  // namespace rondo
