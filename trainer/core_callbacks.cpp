#include "trainer/core_callbacks.h"

#include "callbacks/core/algorithms_callback.h"
#include "callbacks/core/artifact_dir_callback.h"
#include "callbacks/core/autorestart_callback.h"
#include "callbacks/core/backend_callback.h"
#include "callbacks/core/checkpoint_callback.h"
#include "callbacks/core/dataloader_callback.h"
#include "callbacks/core/early_exit_callback.h"
#include "callbacks/core/grad_accum_callback.h"
#include "callbacks/core/logging_callback.h"
#include "callbacks/core/loop.h"
#include "callbacks/core/loss_accum_callback.h"
#include "callbacks/core/metrics_callback.h"
#include "callbacks/core/model_callback.h"
#include "callbacks/core/optimizer_callback.h"
#include "callbacks/core/precision_callback.h"
#include "callbacks/core/reproducibility_callback.h"
#include "callbacks/core/run_schedule_callback.h"
#include "callbacks/core/schedulers_callback.h"
#include "callbacks/core/sparsity_callback.h"
#include "loops/steps/standard_step.h"
#include "trainer/trainer_options.h"

namespace rondo {

namespace {

template <class T>
Factory<CoreCallback> plain(const TrainerOptions&) {
  return use<T>();
}

Factory<CoreCallback> step_body(const TrainerOptions& options) {
  const Factory<TrainStep> step = options.step ? options.step : use<StandardStep>();
  return {step.name(), step.type(), nullptr, [step] { return step.make(); }, step.origin()};
}

Factory<CoreCallback> training_loop(const TrainerOptions& options) {
  return use<TrainingLoop>(options.loop);
}

}  // namespace

const std::vector<CoreSlot>& core_slots() {
  static const std::vector<CoreSlot> kSlots = {
      {AutorestartCallback::kSlot,
       "a run that restarts in vain stops before it does anything",
       plain<AutorestartCallback>},
      {ArtifactDirCallback::kSlot,
       "directories exist before anything writes",
       plain<ArtifactDirCallback>},
      {ReproducibilityCallback::kSlot,
       "the seed is set before a model draws its parameters",
       plain<ReproducibilityCallback>},
      {BackendCallback::kSlot,
       "the device is known before a model is made on it",
       plain<BackendCallback>},
      {ModelCallback::kSlot,
       "parameters exist before an optimizer takes them",
       plain<ModelCallback>},
      {DataloaderCallback::kSlot,
       "the data position is restored with the model",
       plain<DataloaderCallback>},
      {OptimizerCallback::kSlot,
       "groups exist before schedulers drive them",
       plain<OptimizerCallback>},
      {SchedulersCallback::kSlot,
       "numbers are written before the first step",
       plain<SchedulersCallback>},
      {PrecisionCallback::kSlot,
       "gradients are unscaled before users read them",
       plain<PrecisionCallback>},
      {SparsityCallback::kSlot, "masks need both model and optimizer", plain<SparsityCallback>},
      {TrainingLoop::kSlot, "counters are restored before anybody reads them", training_loop},
      {LoggingCallback::kSlot, "log steps follow from the counters", plain<LoggingCallback>},
      {LossAccumCallback::kSlot, "users see the run's own losses first", plain<LossAccumCallback>},
      {MetricsCallback::kSlot,
       "callbacks that watch a metric find its newest value",
       plain<MetricsCallback>},
      {GradAccumCallback::kSlot, "users see the divided loss", plain<GradAccumCallback>},
      {TrainStep::kSlot, "it finds model and optimizers made", step_body},
      {AlgorithmsCallback::kSlot,
       "algorithms act on what rondo made of a batch, and before users see it",
       plain<AlgorithmsCallback>},
      {RunScheduleCallback::kSlot,
       "the plan ends before users hear of a failure",
       plain<RunScheduleCallback>},
      {EarlyExitCallback::kSlot, "users may ask to stop", plain<EarlyExitCallback>},
      {CheckpointCallback::kSlot,
       "a save captures what all others did in the step",
       plain<CheckpointCallback>},
  };
  return kSlots;
}

const std::vector<const char*>& slots_moved_to_end() {
  static const std::vector<const char*> kMoved = {RunScheduleCallback::kSlot,
                                                  CheckpointCallback::kSlot};
  return kMoved;
}

}  // namespace rondo
