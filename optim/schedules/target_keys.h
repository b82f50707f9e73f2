#pragma once

#include "core/options.h"
#include "optim/scheduler.h"

namespace rondo {

/// The keys of SchedulerTarget.
const KeyTable<SchedulerTarget>& target_keys();

/// Gives a scheduler, whose options have a field `target`, the keys of it.
template <class Options>
void add_target_keys(KeyTable<Options>& keys) {
  for (OptionKey key : target_keys().keys()) {
    key.read = [read = key.read](const ConfigValue& value, void* options, FaultSink& faults) {
      read(value, &static_cast<Options*>(options)->target, faults);
    };
    key.write = [write = key.write](const void* options) {
      return write(&static_cast<const Options*>(options)->target);
    };
    keys.add(std::move(key));
  }
}

}  // namespace rondo
