# The public surface: what a program or a plugin can include as <rondo/…>. `cmake --install` puts the
# headers that these include under include/rondo/internal, and installs no other.
#
# A component needs no line here: the header of its family brings it (optim/optimizers.h,
# data/datasets.h and the like).
set(RONDO_PUBLIC_HEADERS
  # whole programs
  rondo.h
  module.h
  plugin.h
  rondo_step.h
  rondo_train.h
  cli/cli_main.h

  # runs
  trainer/export_inference.h
  trainer/export_step.h
  trainer/registries.h
  trainer/run_config.h
  trainer/state.h
  trainer/trainer.h
  trainer/trainer_options.h
  loops/fit_run.h
  loops/predict.h
  pymarlin/trainer.h
  configs/overrides.h
  configs/toml_file.h

  # families of components, and what a new one derives from
  callbacks/builtin/callbacks.h
  callbacks/callback.h
  callbacks/callback_map.h
  callbacks/cleanup.h
  callbacks/global_callbacks.h
  callbacks/hooks.h
  callbacks/listeners.h
  callbacks/not_in_dry_runs.h
  callbacks/results.h
  data/data_loader.h
  data/dataset.h
  data/datasets.h
  loggers/logger.h
  loggers/loggers.h
  metrics/metric.h
  metrics/metrics.h
  models/losses/criterion.h
  models/losses/loss_option.h
  models/model.h
  models/models.h
  optim/operators.h
  optim/optimizer.h
  optim/optimizers.h
  optim/scheduler.h
  optim/schedulers.h
  optim/torch_optimizer.h

  # slots of the Trainer, which TrainerOptions::slots replaces
  callbacks/core/artifact_dir_callback.h
  callbacks/core/autorestart_callback.h
  callbacks/core/backend_callback.h
  callbacks/core/checkpoint_callback.h
  callbacks/core/dataloader_callback.h
  callbacks/core/early_exit_callback.h
  callbacks/core/grad_accum_callback.h
  callbacks/core/logging_callback.h
  callbacks/core/loop.h
  callbacks/core/loss_accum_callback.h
  callbacks/core/metrics_callback.h
  callbacks/core/model_callback.h
  callbacks/core/optimizer_callback.h
  callbacks/core/precision_callback.h
  callbacks/core/reproducibility_callback.h
  callbacks/core/run_schedule_callback.h
  callbacks/core/schedulers_callback.h
  callbacks/core/sparsity_callback.h
  callbacks/core/validation_callback.h

  # how steps run
  backends/backend.h
  backends/global_flags.h
  tracing/make_backend.h

  # checkpoints as files
  checkpoint/checkpoint_file.h
  checkpoint/checkpoint_index.h
  checkpoint/checkpoint_name.h
  checkpoint/checkpoint_tools.h
  checkpoint/safetensors_file.h

  # what all of these speak in
  core/error.h
  core/log.h
  core/media.h
  core/name_scopes.h
  core/operator_facts.h
  core/options.h
  core/state_dict.h
  core/summary.h
  core/tensor_map.h
  core/time.h
  core/timestamp.h
)
