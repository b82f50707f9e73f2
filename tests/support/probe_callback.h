#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "callbacks/callback.h"

namespace rondo::test {

/// Calls the functions that a test gives it; hooks without one do nothing.
class ProbeCallback final : public Callback {
 public:
  struct Options {
    std::function<void(Trainer&, const DataLoader&)> fit_start = {};
    std::function<void(Trainer&, const Batch&)> train_batch_start = {};
    std::function<void(Trainer&)> train_batch_end = {};
    std::function<void(Trainer&, const Batch&)> validate_batch_start = {};
    std::function<void(Trainer&)> validate_start = {};
    std::function<void(Trainer&)> fit_exception = {};
    std::function<void(const Paths&)> enter_validate_all = {};
    std::function<void(std::optional<int64_t>, bool)> run_validation = {};
    std::function<void(Batch& input)> before_forward = {};
    std::function<void(Outputs&)> after_forward = {};
    std::function<void(Trainer&, const Outputs&)> after_backward = {};
    std::function<void(Trainer&, Optimizer&)> before_optimizer_step = {};
    std::function<void(Trainer&, Optimizer&)> after_optimizer_step = {};
    std::function<void(Optimizer&)> after_zero_grad = {};
    std::function<void(StateDict&)> preprocess_checkpoint = {};
    std::function<bool(Trainer&, std::string_view)> custom = {};
  };

  explicit ProbeCallback(const Options& options) : on_(options) {}

  void on_fit_start(Trainer& trainer, const DataLoader& train, const Loaders&, Loop&) override {
    call(on_.fit_start, trainer, train);
  }

  void on_train_batch_start(Trainer& trainer, Model&, const Batch& batch, int64_t) override {
    call(on_.train_batch_start, trainer, batch);
  }

  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) override {
    call(on_.train_batch_end, trainer);
  }

  void on_validate_batch_start(Trainer& trainer, Model&, const Batch& batch, int64_t) override {
    call(on_.validate_batch_start, trainer, batch);
  }

  void on_validate_start(Trainer& trainer, Model&, const DataLoader&, Loop&) override {
    call(on_.validate_start, trainer);
  }

  void on_fit_exception(Trainer& trainer, std::exception_ptr) override {
    call(on_.fit_exception, trainer);
  }

  void on_enter_validate_all(
      Trainer&, Cleanup&, const Loaders&, Loop&, const Paths& checkpoints) override {
    call(on_.enter_validate_all, checkpoints);
  }

  void run_validation(Trainer&, std::optional<int64_t> loop_idx, bool is_last) override {
    call(on_.run_validation, loop_idx, is_last);
  }

  void on_before_forward(Trainer&, Model&, const Batch&, Batch& input) override {
    call(on_.before_forward, input);
  }

  void on_after_forward(Trainer&, Model&, Outputs& outputs, const Batch&) override {
    call(on_.after_forward, outputs);
  }

  void on_after_backward(Trainer& trainer, Model&, Outputs& outputs) override {
    call(on_.after_backward, trainer, outputs);
  }

  void on_before_optimizer_step(Trainer& trainer, Model&, Optimizer& optimizer) override {
    call(on_.before_optimizer_step, trainer, optimizer);
  }

  void on_after_optimizer_step(Trainer& trainer, Model&, Optimizer& optimizer) override {
    call(on_.after_optimizer_step, trainer, optimizer);
  }

  void on_after_optimizer_zero_grad(Trainer&, Model&, Optimizer& optimizer) override {
    call(on_.after_zero_grad, optimizer);
  }

  void preprocess_checkpoint(Trainer&, StateDict& state) override {
    call(on_.preprocess_checkpoint, state);
  }

  bool on_custom(Trainer& trainer, std::string_view hook, HookArgs&) override {
    return on_.custom && on_.custom(trainer, hook);
  }

 private:
  template <class Function, class... Args>
  static void call(const Function& function, Args&&... args) {
    if (function) {
      function(std::forward<Args>(args)...);
    }
  }

  Options on_;
};

}  // namespace rondo::test
