#pragma once

#include "callbacks/callback_map.h"
#include "core/state_dict.h"

namespace rondo {

class Trainer;

/// What a callback's `captured_state` gives.
/// \throws UsageError  naming the callback, when a tensor is undefined
NamedTensors tensors_of(const CallbackMap::Entry& entry);

/// States of users' callbacks and loggers by their names in the Trainer, each with what it is about
/// and with the callback's tensors; the slots save under keys of their own.
/// \throws UsageError  when two parts of one state have the same name
StateDict callback_states(const Trainer& trainer);

/// Gives each callback its state, unless that is about something else: then there is a warning, and
/// the callback stays as it is. When one refuses, those before it get back what they had, and what
/// it threw is thrown on.
void load_callback_states(const Trainer& trainer, const StateDict& states);

/// What a checkpoint holds of one of the Trainer's callbacks, and is given to it; null: nothing.
const StateValue* state_of(const Trainer& trainer,
                           const Callback& callback,
                           const StateDict& checkpoint);

}  // namespace rondo
