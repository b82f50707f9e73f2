#pragma once

#include <string>
#include <vector>

#include "callbacks/callback.h"

namespace rondo::test {

/// Writes down every hook that it gets, with the update count, into a list that outlives it.
class RecordingCallback final : public Callback {
 public:
  struct Options {
    std::vector<std::string>* hooks = nullptr;  ///< borrowed; "hook" or "hook@update"
    bool with_update = false;
    std::string throws_in = "";  ///< the hook that throws std::runtime_error("planted")
  };

  explicit RecordingCallback(const Options& options) : options_(options) {}

#define RONDO_RECORD(name, ...)     \
  void name(__VA_ARGS__) override { \
    record(trainer, #name);         \
  }
  RONDO_RECORD(pre_setup, Trainer& trainer)
  RONDO_RECORD(setup, Trainer& trainer)
  RONDO_RECORD(on_model_init, Trainer& trainer, Model&)
  RONDO_RECORD(post_setup, Trainer& trainer)
  RONDO_RECORD(on_enter_fit, Trainer& trainer, Cleanup&, const DataLoader&, const Loaders&, Loop&)
  RONDO_RECORD(on_fit_start, Trainer& trainer, const DataLoader&, const Loaders&, Loop&)
  RONDO_RECORD(on_fit_end, Trainer& trainer, Loop&)
  RONDO_RECORD(on_fit_exception, Trainer& trainer, std::exception_ptr)
  RONDO_RECORD(on_enter_train, Trainer& trainer, Cleanup&, const DataLoader&, Loop&, int64_t)
  RONDO_RECORD(on_train_start, Trainer& trainer, Model&, const DataLoader&, Loop&, int64_t)
  RONDO_RECORD(on_train_end, Trainer& trainer, Model&, Loop&, int64_t)
  RONDO_RECORD(on_train_exception, Trainer& trainer, std::exception_ptr)
  RONDO_RECORD(on_epoch_start, Trainer& trainer, Model&, const DataLoader&, int64_t)
  RONDO_RECORD(on_epoch_end, Trainer& trainer, Model&, const DataLoader&, int64_t)
  RONDO_RECORD(on_dataloader_start, Trainer& trainer)
  RONDO_RECORD(on_dataloader_end, Trainer& trainer, Batch&)
  RONDO_RECORD(on_train_batch_start, Trainer& trainer, Model&, const Batch&, int64_t)
  RONDO_RECORD(on_train_batch_end, Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t)
  RONDO_RECORD(
      on_enter_validate_all, Trainer& trainer, Cleanup&, const Loaders&, Loop&, const Paths&)
  RONDO_RECORD(run_validation, Trainer& trainer, std::optional<int64_t>, bool)
  RONDO_RECORD(on_enter_validate, Trainer& trainer, Cleanup&, const DataLoader&, Loop&)
  RONDO_RECORD(on_validate_start, Trainer& trainer, Model&, const DataLoader&, Loop&)
  RONDO_RECORD(on_validate_end, Trainer& trainer, Model&, Loop&)
  RONDO_RECORD(on_validate_exception, Trainer& trainer, std::exception_ptr)
  RONDO_RECORD(on_validate_batch_start, Trainer& trainer, Model&, const Batch&, int64_t)
  RONDO_RECORD(
      on_validate_batch_end, Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t)
  RONDO_RECORD(on_predict_start, Trainer& trainer, Model&, const DataLoader&, Loop&)
  RONDO_RECORD(on_predict_end, Trainer& trainer, Model&, Loop&)
  RONDO_RECORD(on_predict_batch_start, Trainer& trainer, Model&, const Batch&, int64_t)
  RONDO_RECORD(
      on_predict_batch_end, Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t)
  RONDO_RECORD(on_train_step_start, Trainer& trainer, Model&, const Batch&)
  RONDO_RECORD(on_train_step_end, Trainer& trainer, Model&, const Outputs&, const Batch&)
  RONDO_RECORD(on_validate_step_start, Trainer& trainer, Model&, const Batch&)
  RONDO_RECORD(on_validate_step_end, Trainer& trainer, Model&, const Outputs&, const Batch&)
  RONDO_RECORD(on_predict_step_start, Trainer& trainer, Model&, const Batch&)
  RONDO_RECORD(on_predict_step_end, Trainer& trainer, Model&, const Outputs&, const Batch&)
  RONDO_RECORD(on_before_forward, Trainer& trainer, Model&, const Batch&, Batch&)
  RONDO_RECORD(on_after_network, Trainer& trainer, Model&, Outputs&, const Batch&)
  RONDO_RECORD(on_before_loss, Trainer& trainer, Model&, Outputs&, Batch&)
  RONDO_RECORD(on_after_loss, Trainer& trainer, Model&, Outputs&, Batch&)
  RONDO_RECORD(on_after_forward, Trainer& trainer, Model&, Outputs&, const Batch&)
  RONDO_RECORD(on_before_backward, Trainer& trainer, Model&, Outputs&)
  RONDO_RECORD(on_after_backward, Trainer& trainer, Model&, Outputs&)
  RONDO_RECORD(on_before_optimizer_step, Trainer& trainer, Model&, Optimizer&)
  RONDO_RECORD(on_after_optimizer_step, Trainer& trainer, Model&, Optimizer&)
  RONDO_RECORD(on_before_optimizer_zero_grad, Trainer& trainer, Model&, Optimizer&)
  RONDO_RECORD(on_after_optimizer_zero_grad, Trainer& trainer, Model&, Optimizer&)
  RONDO_RECORD(on_before_scheduler_step, Trainer& trainer, Model&, Optimizer&, Scheduler&)
  RONDO_RECORD(on_after_scheduler_step, Trainer& trainer, Model&, Optimizer&, Scheduler&)
  RONDO_RECORD(on_save_checkpoint, Trainer& trainer, StateDict&)
  RONDO_RECORD(postprocess_checkpoint, Trainer& trainer, StateDict&)
  RONDO_RECORD(on_after_save_checkpoint, Trainer& trainer, const std::filesystem::path&)
  RONDO_RECORD(on_before_load_checkpoint, Trainer& trainer, const std::filesystem::path*)
  RONDO_RECORD(preprocess_checkpoint, Trainer& trainer, StateDict&)
  RONDO_RECORD(check_checkpoint, Trainer& trainer, const StateDict&)
  RONDO_RECORD(on_load_checkpoint, Trainer& trainer, const StateDict&)
#undef RONDO_RECORD

  void finalize() override {
    options_.hooks->push_back("finalize");
  }

 private:
  void record(Trainer& trainer, const char* hook);

  Options options_;
};

}  // namespace rondo::test
