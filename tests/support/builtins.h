#pragma once

#include "trainer/registries.h"

namespace rondo::test {

/// Every component of rondo, for configs to name.
inline const Registries& builtins() {
  static Registries all;
  static const bool is_filled = (register_builtins(all), true);
  static_cast<void>(is_filled);
  return all;
}

}  // namespace rondo::test
