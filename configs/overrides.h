#pragma once

#include <string_view>

#include "core/config_value.h"

namespace rondo {

/// Applies `trainer.init.loop.max_steps=100` to a config. Tables on the way are made; an element of
/// a list is named by its number (`callbacks.0.GradNorm` or `callbacks[0].GradNorm`). The value is
/// TOML; what is no TOML is taken as a string (`trainer.init.model_dir=runs/a`). What is set has
/// "command line" as its position.
/// \throws ConfigError  when there is no "=", a part of the path is empty, there are more than 64
///                      parts, the path leads to an element that a list does not have or into a
///                      value that is neither table nor list, or the value is not UTF-8
void apply_override(ConfigValue& root, std::string_view assignment);

}  // namespace rondo
