#pragma once

#include "callbacks/algorithm.h"
#include "core/registry.h"

namespace rondo {

void register_channels_last(Registry<Algorithm>& registry);
void register_col_out(Registry<Algorithm>& registry);
void register_cut_mix(Registry<Algorithm>& registry);
void register_cut_out(Registry<Algorithm>& registry);
void register_gradient_clipping(Registry<Algorithm>& registry);
void register_gyro_dropout(Registry<Algorithm>& registry);
void register_label_smoothing(Registry<Algorithm>& registry);
void register_layer_freezing(Registry<Algorithm>& registry);
void register_mix_up(Registry<Algorithm>& registry);
void register_no_op_model(Registry<Algorithm>& registry);
void register_progressive_resizing(Registry<Algorithm>& registry);
void register_rand_augment(Registry<Algorithm>& registry);
void register_selective_backprop(Registry<Algorithm>& registry);
void register_seq_length_warmup(Registry<Algorithm>& registry);
void register_stochastic_depth(Registry<Algorithm>& registry);
void register_surgeries(Registry<Algorithm>& registry);

/// Adds every algorithm that a config can name.
inline void register_builtin_algorithms(Registry<Algorithm>& registry) {
  register_channels_last(registry);
  register_col_out(registry);
  register_cut_mix(registry);
  register_cut_out(registry);
  register_gradient_clipping(registry);
  register_gyro_dropout(registry);
  register_label_smoothing(registry);
  register_layer_freezing(registry);
  register_mix_up(registry);
  register_no_op_model(registry);
  register_progressive_resizing(registry);
  register_rand_augment(registry);
  register_selective_backprop(registry);
  register_seq_length_warmup(registry);
  register_stochastic_depth(registry);
  register_surgeries(registry);
}

}  // namespace rondo
