#include "callbacks/hooks.h"

namespace rondo {

namespace {

template <class... Args>
HookInfo info(const Hook<Args...>& hook) {
  return {hook.name, hook.site};
}

}  // namespace

const std::vector<HookInfo>& all_hooks() {
  static const std::vector<HookInfo> kHooks = {
      info(hooks::pre_setup),
      info(hooks::setup),
      info(hooks::on_model_init),
      info(hooks::post_setup),
      info(hooks::on_enter_fit),
      info(hooks::on_fit_start),
      info(hooks::on_fit_end),
      info(hooks::on_fit_exception),
      info(hooks::on_enter_train),
      info(hooks::on_train_start),
      info(hooks::on_train_end),
      info(hooks::on_train_exception),
      info(hooks::on_epoch_start),
      info(hooks::on_epoch_end),
      info(hooks::on_dataloader_start),
      info(hooks::on_dataloader_end),
      info(hooks::on_train_batch_start),
      info(hooks::on_train_batch_end),
      info(hooks::on_enter_validate_all),
      info(hooks::run_validation),
      info(hooks::on_enter_validate),
      info(hooks::on_validate_start),
      info(hooks::on_validate_end),
      info(hooks::on_validate_exception),
      info(hooks::on_validate_batch_start),
      info(hooks::on_validate_batch_end),
      info(hooks::on_predict_start),
      info(hooks::on_predict_end),
      info(hooks::on_predict_batch_start),
      info(hooks::on_predict_batch_end),
      info(hooks::on_train_step_start),
      info(hooks::on_train_step_end),
      info(hooks::on_validate_step_start),
      info(hooks::on_validate_step_end),
      info(hooks::on_predict_step_start),
      info(hooks::on_predict_step_end),
      info(hooks::on_before_forward),
      info(hooks::on_after_network),
      info(hooks::on_before_loss),
      info(hooks::on_after_loss),
      info(hooks::on_after_forward),
      info(hooks::on_before_backward),
      info(hooks::on_after_backward),
      info(hooks::on_before_optimizer_step),
      info(hooks::on_after_optimizer_step),
      info(hooks::on_before_optimizer_zero_grad),
      info(hooks::on_after_optimizer_zero_grad),
      info(hooks::on_before_scheduler_step),
      info(hooks::on_after_scheduler_step),
      info(hooks::on_save_checkpoint),
      info(hooks::postprocess_checkpoint),
      info(hooks::on_after_save_checkpoint),
      info(hooks::on_before_load_checkpoint),
      info(hooks::preprocess_checkpoint),
      info(hooks::check_checkpoint),
      info(hooks::on_load_checkpoint),
  };
  return kHooks;
}

}  // namespace rondo
