#include "backends/run_as_written.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "backends/scoped.h"
#include "backends/staging.h"

namespace rondo {

namespace {

class AsWritten final : public BodyRequests {
 public:
  explicit AsWritten(const StepCall& call) : call_(call) {}

  void defer(StepClosure closure) override {
    if (call_.asks_for(closure.cadence)) {
      call_.queue.push_back(detached(std::move(closure)));
    }
  }

  void host_call(std::string, std::vector<at::Tensor> tensors, HostFunction function) override {
    const at::NoGradGuard no_grad;
    function(tensors);
  }

  void set_location(std::string_view, std::string_view) override {}

  bool is_recording() const override { return false; }

 private:
  const StepCall& call_;
};

}  // namespace

Outputs run_as_written(const StepCall& call) {
  AsWritten requests(call);
  const Scoped<BodyRequests*> scope(call.requests, &requests);
  return detached(call.body(call.batch));
}

}  // namespace rondo
