#pragma once

#include <string>

#include "core/options.h"
#include "optim/scheduler.h"

namespace rondo::detail {

template <class Options>
SchedulerTarget target_of(const Options& options) {
  return {options.param_group_key, options.param_group_tags};
}

/// The keys that every scheduler has.
template <class Options>
void add_target_keys(KeyTable<Options>& keys) {
  keys.key("param_group_key", &Options::param_group_key, "the optimizer's number that it drives")
      .key("param_group_tags", &Options::param_group_tags, "the groups that it drives; none: all");
}

}  // namespace rondo::detail
