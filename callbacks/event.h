#pragma once

#include <cstddef>
#include <vector>

#include "callbacks/hooks.h"

namespace rondo {

/// What happens in a run, in Composer's names: a view over the hooks. docs/algorithms.md has the
/// table: which hook each one comes from, and which are in the step.
/// Source: the events of Composer.
enum class Event {
  Init,
  BeforeLoad,
  AfterLoad,
  FitStart,
  IterationStart,
  EpochStart,
  BeforeDataloader,
  AfterDataloader,
  BatchStart,
  BeforeTrainBatch,
  BeforeForward,
  AfterForward,
  BeforeLoss,
  AfterLoss,
  BeforeBackward,
  AfterBackward,
  AfterTrainBatch,
  BatchEnd,
  BatchCheckpoint,
  EpochEnd,
  EpochCheckpoint,
  IterationEnd,
  IterationCheckpoint,
  FitEnd,
  EvalBeforeAll,
  EvalStart,
  EvalBatchStart,
  EvalBeforeForward,
  EvalAfterForward,
  EvalBatchEnd,
  EvalEnd,
  EvalAfterAll,
  EvalStandaloneStart,
  EvalStandaloneEnd,
  PredictStart,
  PredictBatchStart,
  PredictBeforeForward,
  PredictAfterForward,
  PredictBatchEnd,
  PredictEnd,
};

/// All of them, in the order of their declaration.
const std::vector<Event>& all_events();

/// Composer's name of it, such as "before_forward".
const char* name_of(Event event);

/// Inside of the recorded step, or on the host every time.
HookSite site_of(Event event);

/// True for those whose name begins with "after": algorithms hear them in reverse, so that what the
/// first one wrapped it unwraps last.
bool is_after(Event event);

/// Hears every event. A callback derives from EventCallback, a logger from Logger and from this.
class EventListener {
 public:
  virtual ~EventListener() = default;

  /// What the event is about is in `trainer.state()`: `batch`, `outputs`, `loader`, `timestamp`,
  /// each where its field says. In the step (`site_of`) only tensor work repeats with replays; host
  /// work goes through `Trainer::log_metrics`, `defer` or `host_call`.
  virtual void run_event(Event event, Trainer& trainer) = 0;
};

/// A callback that hears events instead of hooks, or besides them.
class EventCallback : public Callback, public EventListener {};

}  // namespace rondo
