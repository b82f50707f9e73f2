#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/closure_queue.h"
#include "backends/executor.h"
#include "backends/step.h"
#include "backends/step_report.h"

namespace rondo {

struct BackendOptions {
  std::string mode = "traced";    ///< "traced" or "eager"
  std::string executor = "plan";  ///< of traced steps: "plan", or TorchScript's "interpreter"
  std::vector<std::string> without_passes = {};  ///< of traced steps, by name, for debugging
  bool exact = true;           ///< traced steps are bit-identical to eager ones; false: faster,
                               ///< rounded differently, and a resumed run may differ
  int64_t timed_replays = 0;   ///< of each traced step, >= 0, for a timeline of its instructions
  std::string device = "cpu";  ///< "cpu", "cuda", or "cuda:1" for one of several
  /// On a GPU: operators give the same bits each time (see use_deterministic_kernels). Without,
  /// runs are not repeated bit for bit, and traced steps may not equal eager ones.
  bool deterministic = true;
  /// Which replays of a step are compared with eager, if exact: "growing", number 0, 1, 2, 4, 8 …;
  /// "first"; "off"; or N, every N-th one.
  std::string verify = "growing";
  /// What happens to a step that cannot be recorded: "eager" runs it as written, with a warning;
  /// "error" ends the run with a CaptureError.
  std::string on_refusal = "eager";
  int threads = 1;  ///< of tensor operators, >= 1; 0: a Trainer's fit finds the fastest number
  /// What a non-finite loss does to a run: "stop" ends it; "explain" also names the operator that
  /// caused it. For that, traced steps keep a copy of the state and the batches since.
  std::string on_nan = "stop";
  std::string environment = "same";  ///< "same" numeric environment on resume, or "new"
};

/// Defines where tensors live and how steps run. Knows steps and tensors, not callbacks. Used from
/// the trainer's thread only.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  virtual c10::Device device() const = 0;

  /// Sets the function that lists what a step may read or write besides its batch. The backend
  /// calls it at each capture, and again when a capture meets an unknown tensor.
  virtual void set_state(std::function<CapturedState()> state) = 0;

  /// Sets the function that hashes what the step's code depends on besides its key, its batch and
  /// the memory of its state: which parameters are trained, modes of modules … Called before each
  /// step, so it must be fast; the backend checks LibTorch's own switches itself. With a new number
  /// the backend records the step again; with an earlier number it replays the earlier recording.
  virtual void set_fingerprint(std::function<uint64_t()> /*fingerprint*/) {}

  /// The batch on the device; may return before the copy is done.
  virtual Batch stage(Batch host) = 0;

  /// Waits for everything that was started on the device.
  virtual void synchronize() = 0;

  /// Runs one step on a staged batch. `eager` calls `body`; `traced` records it when `key` (or the
  /// structure of the batch) is new and replays it otherwise.
  /// \param is_due   decides which closures run after this step; empty: all
  /// \param queue    receives the step's due closures, in order, with their tensors
  /// \return the body's outputs, without autograd history; the next run overwrites them
  /// \throws CaptureError  when a replay fails: the state may be partly written. When a replay
  ///                       after the first differs from eager and, if BackendOptions::on_refusal is
  ///                       "error", when the step cannot be recorded or recordings differ: the
  ///                       state is that of the step as written
  /// \throws NonFiniteLossError  when earlier training made the state non-finite, with an
  ///                             explanation; only if BackendOptions::on_nan is "explain". The step
  ///                             did not start
  /// \throws UsageError  when a step is running, or in progress
  /// \throws any exception of the body or a host call, unchanged; the state is as they left it
  virtual const Outputs& run(const StepKey& key,
                             const Batch& batch,
                             const StepBody& body,
                             const IsDue& is_due,
                             ClosureQueue& queue) = 0;

  /// As `run`, in slices: runs until `deadline` has passed, at least one instruction. Copies batch,
  /// body and `is_due`; `queue` must outlive the step. Steps that cannot pause (eager ones,
  /// captures, and those compared with eager) run to their end.
  /// \return the outputs, or null while the step is in progress: `resume` continues it
  /// \throws as `run`. The step is then over: do not call `resume`
  virtual const Outputs* start(const StepKey& key,
                               const Batch& batch,
                               const StepBody& body,
                               const IsDue& is_due,
                               ClosureQueue& queue,
                               const Deadline& deadline);

  /// Continues the step in progress.
  /// \return as `start`
  /// \throws UsageError  when there is none
  /// \throws as `run`. The step is then over
  virtual const Outputs* resume(const Deadline& deadline);

  /// True inside a body, and while a step is in progress between two slices.
  virtual bool is_in_step() const = 0;

  /// True inside a body that is being recorded, or compared with a recording.
  virtual bool is_capturing() const = 0;

  /// Inside a body: queues a closure, which repeats with each replay. \throws UsageError  outside
  virtual void defer(StepClosure closure) = 0;

  /// Inside a body: runs `function` now and at this point of each replay; it may write the tensors
  /// in place. \throws UsageError  outside
  virtual void host_call(std::string name,
                         std::vector<at::Tensor> tensors,
                         HostFunction function) = 0;

  /// Names the callback and hook that is running inside the body, for messages; "" for none. The
  /// texts must outlive the hook call.
  virtual void set_location(std::string_view callback, std::string_view hook) = 0;

  /// Call it when host code has changed what steps do: from then on, every key is new.
  /// \throws NonFiniteLossError  as `run`
  virtual void invalidate(const std::string& why) = 0;

  /// Reruns the last training steps operator by operator and finds the first NaN or infinity that
  /// reached a loss or the state. Leaves the state unchanged.
  /// \return several lines of text; "" unless BackendOptions::on_nan is "explain"
  virtual std::string explain_non_finite() { return ""; }

  /// Checks whether the last training steps made the state non-finite, even if no loss has shown it
  /// yet. Called before the state is saved or counts as the result of training. Frees what was kept
  /// of those steps.
  /// \throws NonFiniteLossError  when they did, with an explanation; only if BackendOptions::on_nan
  ///                             is "explain"
  virtual void check_state() {}

  /// The steps that were recorded and replayed, or refused; none under `eager`.
  virtual std::vector<StepReport> reports() const { return {}; }

  /// The steps that were refused and run as they are written; none under `eager`.
  virtual std::vector<EagerSteps> eager_steps() const { return {}; }

  /// Whether each step run since the last `invalidate` was refused or replayed twice: once to take
  /// its memory, and once while all others hold theirs.
  virtual bool is_settled() const { return true; }
};

}  // namespace rondo
