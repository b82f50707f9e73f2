#pragma once

#include <vector>

#include "callbacks/callback.h"
#include "core/factory.h"

namespace rondo {

struct TrainerOptions;

/// A slot of the Trainer's fixed order.
struct CoreSlot {
  const char* name;
  const char* reason;  ///< why it stands where it does
  /// What fills it unless `TrainerOptions::slots` says otherwise.
  Factory<CoreCallback> (*make_default)(const TrainerOptions&);
};

/// The slots in the order in which they are built. Users' callbacks and loggers follow them; then
/// those of `slots_moved_to_end` are moved behind everything, for dispatch.
const std::vector<CoreSlot>& core_slots();

/// Slots that are called after everybody else: `run_schedule`, so that the plan is gone before
/// others hear of a fit's failure; `checkpoint`, so that it saves what all others did.
const std::vector<const char*>& slots_moved_to_end();

}  // namespace rondo
