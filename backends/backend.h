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
  bool exact = true;  ///< traced steps give the bytes of eager ones; false: faster, rounded
                      ///< differently, and no promise that a resumed run gives the same bytes
  int64_t timed_replays = 0;   ///< of each traced step, >= 0, for a timeline of its instructions
  std::string device = "cpu";  ///< "cpu" or "cuda"
  std::string verify =
      "first";  ///< "first", "off", or N: compare a replay with eager every N steps, if exact
  /// What a traced step that cannot be recorded does: "eager" trains it as it is written, with a
  /// warning; "error" ends the run with a CaptureError.
  std::string on_refusal = "eager";
  int threads = 1;  ///< of tensor operators, >= 1; 0: what a Trainer's fit finds to be the fastest
  /// What a loss that is not finite does to a run: "stop" ends it; "explain" also names the
  /// operator that made it. For that, traced steps keep a copy of the state and the batches since.
  std::string on_nan = "stop";
  std::string environment = "same";  ///< "same" numeric environment on resume, or "new"
};

/// Says where tensors live and how a step is executed. Knows steps and tensors, not callbacks.
/// Used from the trainer's thread only.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  virtual c10::Device device() const = 0;

  /// Tells what a step may read or write besides its batch. Asked at each capture, and again when a
  /// step that is being captured uses a tensor that is not known.
  virtual void set_state(std::function<CapturedState()> state) = 0;

  /// What the step's code depends on besides its key, its batch and the memory of its state, as one
  /// number: which parameters are trained, modes of modules … Asked before each step, so it must
  /// take no time; LibTorch's own switches are looked at by the backend itself. Under another
  /// number a step is recorded anew, and under a number that was there before it is replayed again.
  virtual void set_fingerprint(std::function<uint64_t()> /*fingerprint*/) {}

  /// The batch on the device; may return before the copy is done.
  virtual Batch stage(Batch host) = 0;

  /// Waits for everything that was started on the device.
  virtual void synchronize() = 0;

  /// Runs one step on a staged batch. `eager` calls `body`; `traced` records it when `key` (or the
  /// structure of the batch) is new and replays it otherwise.
  /// \param is_due   asked which closures will run after this step; empty: all
  /// \param queue    gets the closures of the step that are due, in order, with their tensors
  /// \return the body's outputs, without autograd history; the next run overwrites them
  /// \throws CaptureError  when a replay fails: a part of what it writes to the state may be
  ///                       written. When a later replay than the first differs from eager and,
  ///                       where BackendOptions::on_refusal is "error", when the step cannot be
  ///                       recorded or recordings differ: the state is that of the step as written
  /// \throws NonFiniteLossError  when training spoiled the state before, explained; only where
  ///                             BackendOptions::on_nan is "explain". The step was not begun
  /// \throws UsageError  when a step is running, or in progress
  /// \throws whatever the body or a host call throws, as it is; the state is what they left
  virtual const Outputs& run(const StepKey& key,
                             const Batch& batch,
                             const StepBody& body,
                             const IsDue& is_due,
                             ClosureQueue& queue) = 0;

  /// As `run`, in pieces: runs until `deadline` has passed, at least one instruction. Batch, body,
  /// `is_due` are copied; `queue` must stay. Steps that cannot be cut (eager ones, captures, and
  /// those compared with eager) are run whole.
  /// \return the outputs, or null: the step is in progress, and `resume` goes on with it
  /// \throws as `run`. The step is in progress no more then: no `resume`
  virtual const Outputs* start(const StepKey& key,
                               const Batch& batch,
                               const StepBody& body,
                               const IsDue& is_due,
                               ClosureQueue& queue,
                               const Deadline& deadline);

  /// Goes on with the step in progress.
  /// \return as `start`
  /// \throws UsageError  when there is none
  /// \throws as `run`. The step is in progress no more then
  virtual const Outputs* resume(const Deadline& deadline);

  /// True inside a body, and while a step is in progress between two pieces of it.
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

  /// Says which callback and hook is running inside the body, for messages; "" for none. The text
  /// must outlive the call of the hook.
  virtual void set_location(std::string_view callback, std::string_view hook) = 0;

  /// Host code changed what steps do: from here on, every key is a new one.
  /// \throws NonFiniteLossError  as `run`
  virtual void invalidate(const std::string& why) = 0;

  /// Runs the last training steps once more, operator by operator, and finds the first NaN or
  /// infinity that spoiled a loss or the state. The state stays as it is.
  /// \return several lines for people; "" unless BackendOptions::on_nan is "explain"
  virtual std::string explain_non_finite() { return ""; }

  /// Looks whether the last training steps spoiled the state, which no loss may have shown yet:
  /// before it is saved, or passes for the result of training. What was kept of them is let go.
  /// \throws NonFiniteLossError  when they did, explained; only where BackendOptions::on_nan is
  ///                             "explain"
  virtual void check_state() {}

  /// The steps that were recorded and replayed, or refused; none under `eager`.
  virtual std::vector<StepReport> reports() const { return {}; }

  /// The steps that were refused and run as they are written; none under `eager`.
  virtual std::vector<EagerSteps> eager_steps() const { return {}; }

  /// Whether each step that was run since the last `invalidate` was refused, or replayed twice by
  /// now: once to take its memory, and once beside the memory of all others.
  virtual bool is_settled() const { return true; }
};

}  // namespace rondo
