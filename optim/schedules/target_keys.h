#pragma once

#include "core/options.h"
#include "optim/scheduler.h"

namespace rondo {

/// The keys of SchedulerTarget.
const KeyTable<SchedulerTarget>& target_keys();

/// \param offset  of the SchedulerTarget in the options
void add_target_keys(KeyList& keys, size_t offset);

/// Gives a scheduler, whose options have a field `target`, the keys of it.
template <class Options>
void add_target_keys(KeyTable<Options>& keys) {
  add_target_keys(keys, detail::offset_of(&Options::target));
}

}  // namespace rondo
