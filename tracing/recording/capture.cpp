#include "tracing/recording/capture.h"

#include <optional>
#include <utility>

#include "backends/scoped.h"
#include "backends/staging.h"
#include "core/torch_compat.h"
#include "tracing/recording/dispatcher.h"
#include "tracing/recording/recorder.h"

namespace rondo {

namespace {

class Capture final : public BodyRequests {
 public:
  Capture(const std::string& name, const StepCall& call, bool may_guard)
      : call_(call),
        recorder_(
            name, call.batch, [&call] { return call.state(); }, may_guard) {
    result_.host_calls.append_answers_to(call.answers);
  }

  CapturedStep run() {
    const Outputs outputs = run_body();
    result_.host_calls.append_answers_to(nullptr);
    result_.program = recorder_.finish(outputs);
    result_.refusal = recorder_.refusal();
    result_.outputs = detached(outputs);
    result_.numbers = recorder_.outside_numbers();
    for (StepClosure& closure : queued_) {
      call_.queue.push_back(detached(std::move(closure)));
    }
    return std::move(result_);
  }

  void defer(StepClosure closure) override {
    recorder_.add_closure(closure);
    result_.closures.push_back(closure.run);
    if (call_.asks_for(closure.cadence)) {
      queued_.push_back(std::move(closure));
    }
  }

  void host_call(std::string name,
                 std::vector<at::Tensor> tensors,
                 HostFunction function) override {
    recorder_.add_host_call(std::move(name));
    dispatch_host_call(result_.host_calls.add(std::move(function)), tensors);
  }

  void set_location(std::string_view callback, std::string_view hook) override {
    recorder_.set_location(callback, hook);
  }

  bool is_recording() const override { return !recorder_.refusal(); }

 private:
  Outputs run_body() {
    const Scoped<BodyRequests*> requests(call_.requests, this);
    const HostCallScope host_calls(result_.host_calls);
    const RecordingScope recording(recorder_);
    std::optional<compat::BackwardOnThisThread> backward;
    if (!recorder_.device().is_cpu()) {
      backward.emplace();
    }
    return call_.body(call_.batch);
  }

  const StepCall& call_;
  Recorder recorder_;
  CapturedStep result_;
  std::vector<StepClosure> queued_;
};

}  // namespace

CapturedStep capture_step(const std::string& name, const StepCall& call, bool may_guard) {
  register_with_dispatcher();
  return Capture(name, call, may_guard).run();
}

}  // namespace rondo
