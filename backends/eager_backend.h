#pragma once

#include "backends/backend.h"
#include "backends/body_requests.h"

namespace rondo {

/// Runs every step as it is written: the reference that `traced` equals, and the one to debug with.
class EagerBackend final : public Backend {
 public:
  explicit EagerBackend(c10::Device device) : device_(device) {}

  c10::Device device() const override { return device_; }

  /// Nothing to do: the body touches its state itself.
  void set_state(std::function<CapturedState()> state) override;

  Batch stage(Batch host) override;
  void synchronize() override;

  const Outputs& run(const StepKey& key,
                     const Batch& batch,
                     const StepBody& body,
                     const IsDue& is_due,
                     ClosureQueue& queue) override;

  bool is_in_step() const override { return requests_ != nullptr; }

  bool is_capturing() const override { return false; }

  void defer(StepClosure closure) override;
  void host_call(std::string name, std::vector<at::Tensor> tensors, HostFunction function) override;
  void set_location(std::string_view callback, std::string_view hook) override;
  void invalidate(const std::string& why) override;

 private:
  c10::Device device_;
  std::function<CapturedState()> state_;  // nobody asks for it
  Outputs outputs_;
  BodyRequests* requests_ = nullptr;
};

}  // namespace rondo
