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

/// Applies a JSON object, such as `{"trainer.init.seed": 3, "trainer": {"fit": {…}}}`: each key is
/// a path as above, an object inside sets the keys that it has, null takes a key away, and anything
/// else replaces what is there. Values keep their JSON types: a number with a point is a float.
/// \throws ConfigError  when it is no JSON object, or as `apply_override`
void apply_params(ConfigValue& root, std::string_view json);

}  // namespace rondo
