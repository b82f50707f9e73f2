#pragma once

#include <string_view>

#include "core/config_value.h"

namespace rondo {

/// Applies `trainer.init.loop.max_steps=100` to a config. Creates missing tables on the path; a
/// number selects an element of a list (`callbacks.0.GradNorm` or `callbacks[0].GradNorm`). The
/// value is TOML; anything else is a string (`trainer.init.model_dir=runs/a`). The position of the
/// new value is "command line".
/// \throws ConfigError  when there is no "=", a part of the path is empty, there are more than 64
///                      parts, the path names a missing list element or enters a value that is
///                      neither table nor list, or the value is not UTF-8
void apply_override(ConfigValue& root, std::string_view assignment);

}  // namespace rondo
