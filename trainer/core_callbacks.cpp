#include "trainer/core_callbacks.h"

#include "callbacks/artifact_dir_callback.h"
#include "callbacks/autorestart_callback.h"
#include "callbacks/backend_callback.h"
#include "callbacks/checkpoint_callback.h"
#include "callbacks/dataloader_callback.h"
#include "callbacks/early_exit_callback.h"
#include "callbacks/grad_accum_callback.h"
#include "callbacks/logging_callback.h"
#include "callbacks/loss_accum_callback.h"
#include "callbacks/metrics_callback.h"
#include "callbacks/model_callback.h"
#include "callbacks/optimizer_callback.h"
#include "callbacks/precision_callback.h"
#include "callbacks/reproducibility_callback.h"
#include "callbacks/schedulers_callback.h"
#include "callbacks/sparsity_callback.h"
#include "loops/loop.h"
#include "loops/run_schedule_callback.h"
#include "trainer/trainer_options.h"

namespace rondo {

namespace {

template <class T>
Factory<CoreCallback> plain(const TrainerOptions&) {
  return use<T>();
}

Factory<CoreCallback> training_loop(const TrainerOptions& options) {
  return use<TrainingLoop>(options.loop);
}

}  // namespace

const std::vector<CoreSlot>& core_slots() {
  static const std::vector<CoreSlot> kSlots = {
      {"autorestart",
       "a run that restarts in vain stops before it does anything",
       plain<AutorestartCallback>},
      {"artifact_dir", "directories exist before anything writes", plain<ArtifactDirCallback>},
      {"reproducibility",
       "the seed is set before a model draws its parameters",
       plain<ReproducibilityCallback>},
      {"backend", "the device is known before a model is made on it", plain<BackendCallback>},
      {"model", "parameters exist before an optimizer takes them", plain<ModelCallback>},
      {"dataloader", "the data position is restored with the model", plain<DataloaderCallback>},
      {"optimizer", "groups exist before schedulers drive them", plain<OptimizerCallback>},
      {"schedulers", "numbers are written before the first step", plain<SchedulersCallback>},
      {"precision", "gradients are unscaled before users read them", plain<PrecisionCallback>},
      {"sparsity", "masks need both model and optimizer", plain<SparsityCallback>},
      {"loop", "counters are restored before anybody reads them", training_loop},
      {"logging", "log steps follow from the counters", plain<LoggingCallback>},
      {"loss_accum", "users see the run's own losses first", plain<LossAccumCallback>},
      {"metrics", "callbacks that watch a metric find its newest value", plain<MetricsCallback>},
      {"grad_accum", "users see the divided loss", plain<GradAccumCallback>},
      {"run_schedule", "the plan ends before users hear of a failure", plain<RunScheduleCallback>},
      {"early_exit", "users may ask to stop", plain<EarlyExitCallback>},
      {"checkpoint", "a save captures what all others did in the step", plain<CheckpointCallback>},
  };
  return kSlots;
}

const std::vector<const char*>& slots_moved_to_end() {
  static const std::vector<const char*> kMoved = {"run_schedule", "checkpoint"};
  return kMoved;
}

}  // namespace rondo
