#include "callbacks/core/precision_callback.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "callbacks/core/precision_speed.h"
#include "callbacks/decides_on_nan.h"
#include "core/error.h"
#include "core/require.h"
#include "core/torch_compat.h"
#include "models/model_state.h"
#include "optim/clip.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

void check(const PrecisionOptions& o) {
  const auto positive = [](const char* name, const std::optional<double>& value) {
    detail::require(value.value_or(1.0) > 0.0, name, "> 0", value.value_or(1.0));
  };
  const bool is_known = o.dtype == "fp32" || o.dtype == "fp64" || o.dtype == "bf16" ||
                        o.dtype == "fp16" || o.dtype == "bf16_pure";
  detail::require(is_known,
                  "precision.dtype",
                  "\"fp32\", \"fp64\", \"bf16\", \"fp16\" or \"bf16_pure\"",
                  o.dtype);
  const bool is_way = o.on_unsupported == "fallback" || o.on_unsupported == "error" ||
                      o.on_unsupported == "emulate";
  detail::require(is_way,
                  "precision.on_unsupported",
                  "\"fallback\", \"error\" or \"emulate\"",
                  o.on_unsupported);
  check_clipping(o);
  positive("precision.loss_scaling_factor", o.loss_scaling_factor);
  positive("precision.initial_loss_scale", o.initial_loss_scale);
  positive("precision.min_loss_scale", o.min_loss_scale);
  positive("precision.max_loss_scale", o.max_loss_scale);
  detail::require(
      o.steps_per_increase >= 1, "precision.steps_per_increase", ">= 1", o.steps_per_increase);
  detail::require(
      o.loss_scale_growth > 1.0, "precision.loss_scale_growth", "> 1", o.loss_scale_growth);
  detail::require(o.loss_scale_backoff > 0.0 && o.loss_scale_backoff < 1.0,
                  "precision.loss_scale_backoff",
                  "between 0 and 1",
                  o.loss_scale_backoff);
  const bool is_ordered = o.loss_scaling_factor ||
                          (o.initial_loss_scale >= o.min_loss_scale &&
                           o.initial_loss_scale <= o.max_loss_scale.value_or(o.initial_loss_scale));
  detail::require(is_ordered,
                  "precision.initial_loss_scale",
                  "from min_loss_scale to max_loss_scale",
                  o.initial_loss_scale);
  check_operator_names(o.float32_operators);
}

std::optional<at::ScalarType> autocast_of(const PrecisionChoice& choice) {
  if (choice.dtype == "bf16") {
    return at::kBFloat16;
  }
  return choice.dtype == "fp16" && !choice.is_emulated ? std::optional(at::kHalf) : std::nullopt;
}

/// Losses of bfloat16 logits are computed in float32: three digits do not show a run's progress.
const std::vector<std::string>& losses() {
  static const std::vector<std::string> names = {
      "*_loss", "nll_loss*", "kl_div", "binary_cross_entropy*"};
  return names;
}

/// What LibTorch cannot compute or differentiate in bfloat16 on a CPU.
const std::vector<std::string>& unknown_in_bfloat16() {
  static const std::vector<std::string> names = {"hardtanh", "relu6"};
  return names;
}

OperatorPrecision operators_of(const PrecisionChoice& choice, const PrecisionOptions& options) {
  OperatorPrecision operators;
  operators.in_float32 = options.float32_operators;
  const auto add = [&](const std::vector<std::string>& names) {
    operators.in_float32.insert(operators.in_float32.end(), names.begin(), names.end());
  };
  if (choice.is_emulated) {
    operators.emulates_float16 = true;
    add(operators_best_in_float32());
  } else if (choice.dtype == "bf16_pure") {
    operators.rounded_to = at::kBFloat16;
    add(losses());
    add(unknown_in_bfloat16());
  } else if (choice.dtype == "bf16") {
    add(unknown_in_bfloat16());
  } else if (choice.dtype == "fp32" || choice.dtype == "fp64") {
    operators.in_float32.clear();
  }
  return operators;
}

GradScaler::Options scaler_options(const PrecisionOptions& options) {
  GradScaler::Options scaler;
  scaler.is_dynamic = !options.loss_scaling_factor;
  scaler.initial = options.loss_scaling_factor.value_or(options.initial_loss_scale);
  scaler.growth = options.loss_scale_growth;
  scaler.backoff = options.loss_scale_backoff;
  scaler.steps_per_increase = options.steps_per_increase;
  scaler.least = options.min_loss_scale;
  scaler.most = options.max_loss_scale;
  return scaler;
}

[[noreturn]] void fail_at_least_scale(const Trainer& trainer, double least) {
  throw NonFiniteLossError(fmt::format(
      "update {} has gradients that are not finite although the loss scale has fallen to {}, its "
      "minimum: the model leaves float16's range; lower lr, keep operators in float32 "
      "(precision.float32_operators), set precision.min_loss_scale, or use precision.dtype = "
      "\"bf16\"",
      trainer.state().global_step(),
      least));
}

/// Weights of four dimensions are convolutions.
SpeedProbe probe_for(const torch::nn::Module& module) {
  const NamedTensors parameters = named_parameters(module);
  return std::any_of(parameters.begin(),
                     parameters.end(),
                     [](const NamedTensor& parameter) { return parameter.second.dim() == 4; })
             ? SpeedProbe::Convolutional
             : SpeedProbe::Linear;
}

std::vector<at::Tensor> grads_of(const ParamGroup& group) {
  std::vector<at::Tensor> grads;
  for (const Parameter& parameter : group.params) {
    if (parameter.grad().defined()) {
      grads.push_back(parameter.grad());
    }
  }
  return grads;
}

/// The tensors that are updated: parameters, or their masters.
NamedTensors updated(const Optimizer& optimizer) {
  NamedTensors tensors;
  for (const ParamGroup& group : optimizer.groups()) {
    for (const Parameter& parameter : group.params) {
      tensors.emplace_back(parameter.name, parameter.value);
    }
  }
  return tensors;
}

/// Whether an element is not finite, on the gradients' device. \capture safe
at::Tensor any_bad(const std::vector<at::Tensor>& grads) {
  std::vector<at::Tensor> sums;
  for (const at::Tensor& grad : grads) {
    sums.push_back(grad.detach().mul(0).sum().to(at::kFloat));  // zero times NaN is NaN
  }
  return sums.empty() ? at::zeros({}, at::kBool) : at::stack(sums).sum().ne(0);
}

}  // namespace

void check_clipping(const PrecisionOptions& options) {
  const std::pair<const char*, const std::optional<double>*> bounds[] = {
      {"max_gradient_norm", &options.max_gradient_norm},
      {"max_gradient_value", &options.max_gradient_value},
      {"max_gradient_ratio", &options.max_gradient_ratio}};
  std::vector<std::string> given;
  for (const auto& [name, bound] : bounds) {
    const double value = bound->value_or(1.0);
    detail::require(value > 0.0, std::string("precision.") + name, "> 0", value);
    if (bound->has_value()) {
      given.emplace_back(name);
    }
  }
  if (given.size() > 1) {
    throw UsageError(fmt::format("precision: {} exclude each other; give one of them",
                                 fmt::join(given, " and ")));
  }
  if (options.clip_by_group && !options.max_gradient_norm) {
    throw UsageError("precision: clip_by_group needs max_gradient_norm, the norm of each group");
  }
}

PrecisionScope::PrecisionScope(std::optional<at::ScalarType> autocast,
                               c10::DeviceType device,
                               const OperatorPrecision& operators)
    : operators_(operators), autocast_(autocast), device_(device) {
  if (autocast_) {
    was_on_ = compat::autocast_enabled(device_);
    compat::set_autocast(device_, true);
    compat::set_autocast_dtype(device_, *autocast_);
    at::autocast::increment_nesting();
  }
}

PrecisionScope::~PrecisionScope() {
  if (autocast_) {
    if (at::autocast::decrement_nesting() == 0) {
      at::autocast::clear_cache();
    }
    compat::set_autocast(device_, was_on_);
  }
}

void PrecisionCallback::pre_setup(Trainer& trainer) {
  options_ = trainer.options().precision;
  check(options_);
  const c10::Device device = trainer.state().backend->device();
  device_ = device.type();
  choice_ = choose_precision(
      options_, device, [&](at::ScalarType dtype) { return can_compute(device, dtype); });
  autocast_ = autocast_of(choice_);
  operators_ = operators_of(choice_, options_);
}

void PrecisionCallback::setup(Trainer& trainer) {
  if (!choice_.note.empty()) {
    trainer.log().warning(choice_.note);  // not before the log has its file
  }
  if (choice_.dtype == "fp16") {
    scaler_ =
        std::make_unique<GradScaler>(scaler_options(options_), trainer.state().backend->device());
  }
}

void PrecisionCallback::post_setup(Trainer& trainer) {
  const auto* const decides = trainer.callback<DecidesOnNan>();
  skips_bad_ = decides != nullptr && decides->skips_updates();
}

void PrecisionCallback::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) {
  if (device_ == c10::kCPU && (choice_.dtype == "bf16" || choice_.dtype == "bf16_pure")) {
    const SpeedProbe probe = probe_for(trainer.state().model->module());
    const std::string note = slowness_note(choice_.dtype, probe, relative_time_of_bf16(probe));
    if (!note.empty()) {
      trainer.log().info(note);
    }
  }
}

void PrecisionCallback::on_before_optimizer_step(Trainer&, Model&, Optimizer& optimizer) {
  optimizer.gather_grads();
  if (scaler_) {
    found_bad_.emplace_back(&optimizer, scaler_->unscale_(optimizer.grads()));
  } else if (skips_bad_) {
    found_bad_.emplace_back(&optimizer, any_bad(optimizer.grads()));
  }
}

void PrecisionCallback::on_train_step_end(Trainer& trainer, Model&, const Outputs&, const Batch&) {
  if (found_bad_.empty() || !scaler_) {
    found_bad_.clear();
    return;
  }
  at::Tensor is_bad = found_bad_.front().second;
  for (size_t i = 1; i < found_bad_.size(); ++i) {
    is_bad = at::logical_or(is_bad, found_bad_[i].second);
  }
  found_bad_.clear();
  const at::Tensor scale = scaler_->scale().clone();
  const at::Tensor is_least = scaler_->move_on(is_bad);
  if (options_.log_loss_scale.value_or(scaler_->options().is_dynamic)) {
    trainer.log_metrics({{"loss_scale", scale}, {"skipped_steps", scaler_->skipped_steps()}});
  }
  trainer.defer({is_least, scaler_->skipped_steps()}, [this, &trainer](const auto& values) {
    if (values[0].template item<bool>()) {
      fail_at_least_scale(trainer, scaler_->options().least);
    }
    note_skipped(trainer, values[1].template item<int64_t>());
  });
}

/// A scale that adapts ends such a row, or the run.
void PrecisionCallback::note_skipped(const Trainer& trainer, int64_t skipped) {
  constexpr int64_t kMostInRow = 5;
  skipped_in_row_ = skipped > skipped_ ? skipped_in_row_ + 1 : 0;
  skipped_ = skipped;
  if (skipped_in_row_ == kMostInRow && !scaler_->options().is_dynamic) {
    trainer.log().warning(fmt::format(
        "{} updates in a row were skipped: their gradients are not finite with the loss scale {}. "
        "Set a smaller precision.loss_scaling_factor, or remove it so that the scale adapts",
        kMostInRow,
        *options_.loss_scaling_factor));
  }
}

void PrecisionCallback::on_fit_end(Trainer& trainer, Loop&) {
  const int64_t skipped = scaler_ ? scaler_->skipped_steps().item<int64_t>() : 0;
  if (skipped == 0) {
    return;
  }
  const std::string text = fmt::format(
      "{} of {} updates skipped: their gradients were not finite with the loss scale of that time",
      skipped,
      trainer.state().global_step());
  if (scaler_->options().is_dynamic) {
    trainer.log().info(text);
  } else {
    trainer.log().warning(text);
  }
}

NamedTensors PrecisionCallback::captured_state() {
  return scaler_ ? scaler_->captured_state() : NamedTensors();
}

void PrecisionCallback::on_save_checkpoint(Trainer&, StateDict& state) {
  if (scaler_) {
    state.set("grad_scaler", scaler_->state_dict());
  }
}

void PrecisionCallback::check_checkpoint(Trainer&, const StateDict& state) {
  const StateValue* saved = state.find("grad_scaler");
  if (scaler_ && saved != nullptr) {
    scaler_->check(saved->as_dict());
  }
}

void PrecisionCallback::on_load_checkpoint(Trainer& trainer, const StateDict& state) {
  if (!scaler_) {
    return;
  }
  if (const StateValue* saved = state.find("grad_scaler")) {
    scaler_->load(saved->as_dict());
    skipped_ = scaler_->skipped_steps().item<int64_t>();
  } else {
    trainer.log().info("the checkpoint holds no loss scale: it starts at its initial value");
  }
}

at::ScalarType PrecisionCallback::dtype_of_weights() const {
  if (choice_.dtype == "fp64") {
    return at::kDouble;
  }
  return choice_.dtype == "bf16_pure" ? at::kBFloat16 : at::kFloat;
}

Masters PrecisionCallback::masters() const {
  return choice_.dtype == "bf16_pure" ? Masters::Float32 : Masters::None;
}

void PrecisionCallback::check_optimizer(const Optimizer& optimizer) const {
  if (choice_.dtype == "bf16_pure" && !optimizer.eager_only().empty()) {
    throw UsageError(
        "precision.dtype = \"bf16_pure\" keeps float32 masters, which only rondo's optimizers "
        "update: choose one of those");
  }
  if (choice_.dtype == "fp16" && optimizer.needs_evaluate()) {
    throw UsageError(
        "precision.dtype = \"fp16\" scales the loss, and the optimizer computes the loss several "
        "times in an update: use \"bf16\" or \"fp32\" with it");
  }
}

Batch PrecisionCallback::cast(const Batch& batch) const {
  const at::ScalarType dtype = dtype_of_weights();
  if (dtype == at::kFloat) {
    return batch;
  }
  Batch cast;
  for (const auto& [name, tensor] : batch.items()) {
    cast.set(name, tensor.is_floating_point() ? tensor.to(dtype) : tensor);
  }
  return cast;
}

at::Tensor PrecisionCallback::scaled(const at::Tensor& loss) const {
  return scaler_ ? scaler_->scaled(loss) : loss;
}

void PrecisionCallback::clip_gradients(Optimizer& optimizer) const {
  if (options_.max_gradient_ratio) {
    clip_by_ratio_(updated(optimizer), *options_.max_gradient_ratio);
  } else if (options_.max_gradient_norm && options_.clip_by_group) {
    for (const ParamGroup& group : optimizer.groups()) {
      clip_by_norm_(grads_of(group), *options_.max_gradient_norm);
    }
  } else if (options_.max_gradient_norm) {
    clip_by_norm_(optimizer.grads(), *options_.max_gradient_norm);
  } else if (options_.max_gradient_value) {
    clip_by_value_(optimizer.grads(), *options_.max_gradient_value);
  }
}

void PrecisionCallback::step(Optimizer& optimizer, const Optimizer::Evaluate& evaluate) const {
  const auto newest = std::find_if(found_bad_.rbegin(), found_bad_.rend(), [&](const auto& found) {
    return found.first == &optimizer;
  });
  optimizer.step(evaluate, newest != found_bad_.rend() ? newest->second : at::Tensor());
}

}  // namespace rondo
