#pragma once

#include "core/config_value.h"

namespace rondo::test {

/// Puts every key of `over` into `table`. Tables are merged, but for those that name another
/// component or give another length of the run; everything else is replaced.
void overlay(ConfigTable& table, const ConfigTable& over);

}  // namespace rondo::test
