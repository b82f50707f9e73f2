#pragma once

#include <vector>

#include "callbacks/callback.h"

namespace rondo {

/// Where a hook runs: on the host every time, or inside the recorded step.
enum class HookSite { Host, Step };

/// A hook by name: what `Trainer::call` dispatches.
template <class... Args>
struct Hook {
  const char* name;
  void (Callback::*method)(Trainer&, Args...);
  HookSite site;
  bool BatchHooks::*in_batch = nullptr;  ///< of a per-batch hook: whether a callback has it
};

struct HookInfo {
  const char* name;
  HookSite site;
};

/// Every hook of Callback that takes the Trainer, in the order of its declaration.
const std::vector<HookInfo>& all_hooks();

/// The hook table: one entry for each method of Callback (a test compares the two).
namespace hooks {

inline constexpr Hook<> pre_setup{"pre_setup", &Callback::pre_setup, HookSite::Host};
inline constexpr Hook<> setup{"setup", &Callback::setup, HookSite::Host};
inline constexpr Hook<Model&> on_model_init{
    "on_model_init", &Callback::on_model_init, HookSite::Host};
inline constexpr Hook<> post_setup{"post_setup", &Callback::post_setup, HookSite::Host};
inline constexpr Hook<Cleanup&, const DataLoader&, const Loaders&, Loop&> on_enter_fit{
    "on_enter_fit", &Callback::on_enter_fit, HookSite::Host};
inline constexpr Hook<const DataLoader&, const Loaders&, Loop&> on_fit_start{
    "on_fit_start", &Callback::on_fit_start, HookSite::Host};
inline constexpr Hook<Loop&> on_fit_end{"on_fit_end", &Callback::on_fit_end, HookSite::Host};
inline constexpr Hook<std::exception_ptr> on_fit_exception{
    "on_fit_exception", &Callback::on_fit_exception, HookSite::Host};
inline constexpr Hook<Cleanup&, const DataLoader&, Loop&, int64_t> on_enter_train{
    "on_enter_train", &Callback::on_enter_train, HookSite::Host};
inline constexpr Hook<Model&, const DataLoader&, Loop&, int64_t> on_train_start{
    "on_train_start", &Callback::on_train_start, HookSite::Host};
inline constexpr Hook<Model&, Loop&, int64_t> on_train_end{
    "on_train_end", &Callback::on_train_end, HookSite::Host};
inline constexpr Hook<std::exception_ptr> on_train_exception{
    "on_train_exception", &Callback::on_train_exception, HookSite::Host};
inline constexpr Hook<Model&, const DataLoader&, int64_t> on_epoch_start{
    "on_epoch_start", &Callback::on_epoch_start, HookSite::Host};
inline constexpr Hook<Model&, const DataLoader&, int64_t> on_epoch_end{
    "on_epoch_end", &Callback::on_epoch_end, HookSite::Host};
inline constexpr Hook<> on_dataloader_start{"on_dataloader_start",
                                            &Callback::on_dataloader_start,
                                            HookSite::Host,
                                            &BatchHooks::dataloader_start};
inline constexpr Hook<Batch&> on_dataloader_end{
    "on_dataloader_end", &Callback::on_dataloader_end, HookSite::Host, &BatchHooks::dataloader_end};
inline constexpr Hook<Model&, const Batch&, int64_t> on_train_batch_start{
    "on_train_batch_start",
    &Callback::on_train_batch_start,
    HookSite::Host,
    &BatchHooks::train_start};
inline constexpr Hook<Model&, const Outputs&, const Batch&, int64_t> on_train_batch_end{
    "on_train_batch_end", &Callback::on_train_batch_end, HookSite::Host, &BatchHooks::train_end};
inline constexpr Hook<Cleanup&, const Loaders&, Loop&, const Paths&> on_enter_validate_all{
    "on_enter_validate_all", &Callback::on_enter_validate_all, HookSite::Host};
inline constexpr Hook<std::optional<int64_t>, bool> run_validation{
    "run_validation", &Callback::run_validation, HookSite::Host};
inline constexpr Hook<Cleanup&, const DataLoader&, Loop&> on_enter_validate{
    "on_enter_validate", &Callback::on_enter_validate, HookSite::Host};
inline constexpr Hook<Model&, const DataLoader&, Loop&> on_validate_start{
    "on_validate_start", &Callback::on_validate_start, HookSite::Host};
inline constexpr Hook<Model&, Loop&> on_validate_end{
    "on_validate_end", &Callback::on_validate_end, HookSite::Host};
inline constexpr Hook<std::exception_ptr> on_validate_exception{
    "on_validate_exception", &Callback::on_validate_exception, HookSite::Host};
inline constexpr Hook<Model&, const Batch&, int64_t> on_validate_batch_start{
    "on_validate_batch_start",
    &Callback::on_validate_batch_start,
    HookSite::Host,
    &BatchHooks::validate_start};
inline constexpr Hook<Model&, const Outputs&, const Batch&, int64_t> on_validate_batch_end{
    "on_validate_batch_end",
    &Callback::on_validate_batch_end,
    HookSite::Host,
    &BatchHooks::validate_end};
inline constexpr Hook<Model&, const DataLoader&, Loop&> on_predict_start{
    "on_predict_start", &Callback::on_predict_start, HookSite::Host};
inline constexpr Hook<Model&, Loop&> on_predict_end{
    "on_predict_end", &Callback::on_predict_end, HookSite::Host};
inline constexpr Hook<Model&, const Batch&, int64_t> on_predict_batch_start{
    "on_predict_batch_start", &Callback::on_predict_batch_start, HookSite::Host};
inline constexpr Hook<Model&, const Outputs&, const Batch&, int64_t> on_predict_batch_end{
    "on_predict_batch_end", &Callback::on_predict_batch_end, HookSite::Host};
inline constexpr Hook<Model&, const Batch&> on_train_step_start{
    "on_train_step_start", &Callback::on_train_step_start, HookSite::Step};
inline constexpr Hook<Model&, const Outputs&, const Batch&> on_train_step_end{
    "on_train_step_end", &Callback::on_train_step_end, HookSite::Step};
inline constexpr Hook<Model&, const Batch&> on_validate_step_start{
    "on_validate_step_start", &Callback::on_validate_step_start, HookSite::Step};
inline constexpr Hook<Model&, const Outputs&, const Batch&> on_validate_step_end{
    "on_validate_step_end", &Callback::on_validate_step_end, HookSite::Step};
inline constexpr Hook<Model&, const Batch&> on_predict_step_start{
    "on_predict_step_start", &Callback::on_predict_step_start, HookSite::Step};
inline constexpr Hook<Model&, const Outputs&, const Batch&> on_predict_step_end{
    "on_predict_step_end", &Callback::on_predict_step_end, HookSite::Step};
inline constexpr Hook<Model&, const Batch&, Batch&> on_before_forward{
    "on_before_forward", &Callback::on_before_forward, HookSite::Step};
inline constexpr Hook<Model&, Outputs&, const Batch&> on_after_network{
    "on_after_network", &Callback::on_after_network, HookSite::Step};
inline constexpr Hook<Model&, Outputs&, Batch&> on_before_loss{
    "on_before_loss", &Callback::on_before_loss, HookSite::Step};
inline constexpr Hook<Model&, Outputs&, Batch&> on_after_loss{
    "on_after_loss", &Callback::on_after_loss, HookSite::Step};
inline constexpr Hook<Model&, Outputs&, const Batch&> on_after_forward{
    "on_after_forward", &Callback::on_after_forward, HookSite::Step};
inline constexpr Hook<Model&, Outputs&> on_before_backward{
    "on_before_backward", &Callback::on_before_backward, HookSite::Step};
inline constexpr Hook<Model&, Outputs&> on_after_backward{
    "on_after_backward", &Callback::on_after_backward, HookSite::Step};
inline constexpr Hook<Model&, Optimizer&> on_before_optimizer_step{
    "on_before_optimizer_step", &Callback::on_before_optimizer_step, HookSite::Step};
inline constexpr Hook<Model&, Optimizer&> on_after_optimizer_step{
    "on_after_optimizer_step", &Callback::on_after_optimizer_step, HookSite::Step};
inline constexpr Hook<Model&, Optimizer&> on_before_optimizer_zero_grad{
    "on_before_optimizer_zero_grad", &Callback::on_before_optimizer_zero_grad, HookSite::Step};
inline constexpr Hook<Model&, Optimizer&> on_after_optimizer_zero_grad{
    "on_after_optimizer_zero_grad", &Callback::on_after_optimizer_zero_grad, HookSite::Step};
inline constexpr Hook<Model&, Optimizer&, Scheduler&> on_before_scheduler_step{
    "on_before_scheduler_step", &Callback::on_before_scheduler_step, HookSite::Step};
inline constexpr Hook<Model&, Optimizer&, Scheduler&> on_after_scheduler_step{
    "on_after_scheduler_step", &Callback::on_after_scheduler_step, HookSite::Step};
inline constexpr Hook<StateDict&> on_save_checkpoint{
    "on_save_checkpoint", &Callback::on_save_checkpoint, HookSite::Host};
inline constexpr Hook<StateDict&> postprocess_checkpoint{
    "postprocess_checkpoint", &Callback::postprocess_checkpoint, HookSite::Host};
inline constexpr Hook<const std::filesystem::path&> on_after_save_checkpoint{
    "on_after_save_checkpoint", &Callback::on_after_save_checkpoint, HookSite::Host};
inline constexpr Hook<const std::filesystem::path*> on_before_load_checkpoint{
    "on_before_load_checkpoint", &Callback::on_before_load_checkpoint, HookSite::Host};
inline constexpr Hook<StateDict&> preprocess_checkpoint{
    "preprocess_checkpoint", &Callback::preprocess_checkpoint, HookSite::Host};
inline constexpr Hook<const StateDict&> check_checkpoint{
    "check_checkpoint", &Callback::check_checkpoint, HookSite::Host};
inline constexpr Hook<const StateDict&> on_load_checkpoint{
    "on_load_checkpoint", &Callback::on_load_checkpoint, HookSite::Host};

}  // namespace hooks

}  // namespace rondo
