#pragma once

#include <string>

#include "callbacks/callback.h"
#include "core/tensor_map.h"

namespace rondo {

class StepContext;
class Trainer;
struct State;

/// The body of a training step, the unit that is recorded: what is computed from a batch, and which
/// optimizer steps when. Fills slot `step`. A step of a user's own derives from it, registered like
/// other components (`[trainer.init.step.<Class>]`, `TrainerOptions::step`).
///
/// One run on the last batch of a group is one update of the run, whatever steps in it. Gradients
/// are undefined before the first batch of a group and after the last one. An optimizer that does
/// not step keeps its state, and its schedulers stand.
class TrainStep : public CoreCallback {
 public:
  static constexpr const char* kSlot = "step";

  using Component = TrainStep;
  using Options = NoOptions;

  /// \return the outputs, with a "loss" to log
  /// \capture safe: tensor work only. Recorded once for each kind and place in a group; what the
  ///          host reads in it is baked
  virtual Outputs run(StepContext& step, const Batch& batch) = 0;

  /// Which of its bodies the next update runs, such as "critic" in two updates of three: each kind
  /// is recorded by itself. The same for all batches of a group, and after a resume: a function of
  /// `state.timestamp.update`.
  virtual std::string kind(const State&) const { return ""; }

  /// Tensors of its own that it reads or writes, each by a name. They keep their storage, and they
  /// are saved with the run.
  virtual NamedTensors tensors() const { return {}; }

  /// Tensors of its own that it reads alone, such as a teacher's weights. They are not saved:
  /// `setup` makes them again.
  virtual NamedTensors constants() const { return {}; }

  /// Both.
  NamedTensors captured_state() final;

  /// `tensors`, which are loaded in place.
  StateDict save_state() const override;

  /// \throws CheckpointError  when a tensor is missing or has another shape
  void load_state(const StateDict& state) override;

  /// Its class.
  std::string state_subject() const override;
};

/// One training step: the body of slot `step` between its in-step hooks. Reads the batch's place in
/// its group from `trainer.state().position`.
Outputs train_step(Trainer& trainer, const Batch& batch);

/// One validation step: forward without gradients, between its in-step hooks.
/// \param hook  family of the hooks around it, "validate" by default
Outputs validate_step(Trainer& trainer, const Batch& batch, const std::string& hook);

}  // namespace rondo
