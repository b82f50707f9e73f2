#pragma once

#include "callbacks/callback.h"
#include "core/registry.h"
#include "metrics/metric.h"

namespace rondo {

void register_alert(Registry<Callback>& registry);
void register_augment_images(Registry<Callback>& registry);
void register_average_weights(Registry<Callback>& registry);
void register_check_gradients(Registry<Callback>& registry);
void register_compute_norm(Registry<Callback>& registry);
void register_count_params(Registry<Callback>& registry);
void register_early_stopper(Registry<Callback>& registry);
void register_evaluator(Registry<Callback>& registry, const Registry<Metric>& metrics);
void register_export_for_inference(Registry<Callback>& registry);
void register_flop_utilization(Registry<Callback>& registry);
void register_gradient_noise_scale(Registry<Callback>& registry);
void register_hang_watchdog(Registry<Callback>& registry);
void register_image_visualizer(Registry<Callback>& registry);
void register_keep_best_checkpoints(Registry<Callback>& registry);
void register_keep_n_checkpoints(Registry<Callback>& registry);
void register_load_checkpoint_states(Registry<Callback>& registry);
void register_log_input_summaries(Registry<Callback>& registry);
void register_log_optimizer_param_group(Registry<Callback>& registry);
void register_log_sparsity(Registry<Callback>& registry);
void register_lora(Registry<Callback>& registry);
void register_memory_monitor(Registry<Callback>& registry);
void register_memory_snapshot(Registry<Callback>& registry);
void register_nan_policy(Registry<Callback>& registry);
void register_normalize_inputs(Registry<Callback>& registry);
void register_notify_command(Registry<Callback>& registry);
void register_notify_mail(Registry<Callback>& registry);
void register_notify_webhook(Registry<Callback>& registry);
void register_op_profiler(Registry<Callback>& registry);
void register_optimizer_monitor(Registry<Callback>& registry);
void register_run_time_limit(Registry<Callback>& registry);
void register_runtime_estimator(Registry<Callback>& registry);
void register_sample_text(Registry<Callback>& registry);
void register_save_checkpoint_state(Registry<Callback>& registry);
void register_save_performance_data(Registry<Callback>& registry);
void register_save_script(Registry<Callback>& registry);
void register_scoped_flags(Registry<Callback>& registry);
void register_selective_grad(Registry<Callback>& registry);
void register_skip_samples(Registry<Callback>& registry);
void register_speed_monitor(Registry<Callback>& registry);
void register_system_metrics_monitor(Registry<Callback>& registry);
void register_tensor_listener(Registry<Callback>& registry);
void register_threshold_stopper(Registry<Callback>& registry);
void register_verify_numerics(Registry<Callback>& registry);

/// Adds every callback that a config can name.
/// \param metrics  those that an Evaluator can name; outlives the registry
inline void register_builtin_callbacks(Registry<Callback>& registry,
                                       const Registry<Metric>& metrics) {
  register_alert(registry);
  register_augment_images(registry);
  register_average_weights(registry);
  register_check_gradients(registry);
  register_compute_norm(registry);
  register_count_params(registry);
  register_early_stopper(registry);
  register_evaluator(registry, metrics);
  register_export_for_inference(registry);
  register_flop_utilization(registry);
  register_gradient_noise_scale(registry);
  register_hang_watchdog(registry);
  register_image_visualizer(registry);
  register_keep_best_checkpoints(registry);
  register_keep_n_checkpoints(registry);
  register_load_checkpoint_states(registry);
  register_log_input_summaries(registry);
  register_log_optimizer_param_group(registry);
  register_log_sparsity(registry);
  register_lora(registry);
  register_memory_monitor(registry);
  register_memory_snapshot(registry);
  register_nan_policy(registry);
  register_normalize_inputs(registry);
  register_notify_command(registry);
  register_notify_mail(registry);
  register_notify_webhook(registry);
  register_op_profiler(registry);
  register_optimizer_monitor(registry);
  register_run_time_limit(registry);
  register_runtime_estimator(registry);
  register_sample_text(registry);
  register_save_checkpoint_state(registry);
  register_save_performance_data(registry);
  register_save_script(registry);
  register_scoped_flags(registry);
  register_selective_grad(registry);
  register_skip_samples(registry);
  register_speed_monitor(registry);
  register_system_metrics_monitor(registry);
  register_tensor_listener(registry);
  register_threshold_stopper(registry);
  register_verify_numerics(registry);
}

}  // namespace rondo
