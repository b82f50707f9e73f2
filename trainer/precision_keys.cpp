#include "trainer/slot_keys.h"

#include <optional>
#include <string>

namespace rondo {

namespace {

/// "dynamic", which is no number in the options, or a number.
struct LossScalingOption {
  static std::string name() { return "\"dynamic\" or a number > 0"; }

  static std::optional<std::optional<double>> read(const ConfigValue& value, FaultSink& faults) {
    const std::string* const word = value.get_if<std::string>();
    if (word != nullptr && *word == "dynamic") {
      return std::optional<double>();
    }
    const double* const number = value.get_if<double>();
    const int64_t* const whole = value.get_if<int64_t>();
    const double factor = number != nullptr  ? *number
                          : whole != nullptr ? static_cast<double>(*whole)
                                             : 0.0;
    if (!(factor > 0.0)) {
      detail::mismatch(value, name(), faults);
      return std::nullopt;
    }
    return std::optional(factor);
  }

  static ConfigValue write(const std::optional<double>& value) {
    return value ? ConfigValue(*value) : ConfigValue("dynamic");
  }
};

void add_format_keys(KeyTable<PrecisionOptions>& keys) {
  keys.key("dtype",
           &PrecisionOptions::dtype,
           one_of({"fp32", "fp64", "bf16", "fp16", "bf16_pure"}),
           "number format of forward and backward; bf16_pure: of the weights too")
      .key("on_unsupported",
           &PrecisionOptions::on_unsupported,
           one_of({"fallback", "error", "emulate"}),
           "where the device lacks the format: take the next best with a warning, end the run, or "
           "round to float16 after each operator (fp16 only)")
      .key("float32_operators",
           &PrecisionOptions::float32_operators,
           "globs of operators that are computed in float32, such as \"softmax\"");
}

void add_loss_scale_keys(KeyTable<PrecisionOptions>& keys) {
  keys.key_of("loss_scaling_factor",
              &PrecisionOptions::loss_scaling_factor,
              LossScalingOption{},
              "what fp16 multiplies the loss by before backward")
      .key("initial_loss_scale",
           &PrecisionOptions::initial_loss_scale,
           greater_than(0),
           "dynamic loss scale at the start")
      .key("steps_per_increase",
           &PrecisionOptions::steps_per_increase,
           at_least(1),
           "updates without a bad gradient after which the loss scale grows")
      .key("loss_scale_growth",
           &PrecisionOptions::loss_scale_growth,
           greater_than(1),
           "what a growing loss scale is multiplied by")
      .key("loss_scale_backoff",
           &PrecisionOptions::loss_scale_backoff,
           between(0, 1),
           "what the loss scale is multiplied by after a bad gradient")
      .key("min_loss_scale",
           &PrecisionOptions::min_loss_scale,
           greater_than(0),
           "least dynamic loss scale; a bad gradient there ends the run")
      .key("max_loss_scale",
           &PrecisionOptions::max_loss_scale,
           greater_than(0),
           "largest dynamic loss scale; none: that of float32")
      .key("log_loss_scale",
           &PrecisionOptions::log_loss_scale,
           "log loss_scale and skipped_steps; none: where the loss scale is dynamic");
}

void add_clipping_keys(KeyTable<PrecisionOptions>& keys) {
  keys.key("max_gradient_norm",
           &PrecisionOptions::max_gradient_norm,
           greater_than(0),
           "clip gradients to this joint L2 norm")
      .key("max_gradient_value",
           &PrecisionOptions::max_gradient_value,
           greater_than(0),
           "clamp each element of the gradients to plus and minus this")
      .key("max_gradient_ratio",
           &PrecisionOptions::max_gradient_ratio,
           greater_than(0),
           "clip each unit's gradient to this share of its weights' norm (AGC)")
      .key("clip_by_group",
           &PrecisionOptions::clip_by_group,
           "clip each parameter group by its norm instead of the joint one");
}

}  // namespace

KeyTable<PrecisionOptions> precision_keys() {
  KeyTable<PrecisionOptions> keys;
  add_format_keys(keys);
  add_loss_scale_keys(keys);
  add_clipping_keys(keys);
  return keys;
}

}  // namespace rondo
