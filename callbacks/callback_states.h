#pragma once

#include "core/state_dict.h"

namespace rondo {

class Callback;
class Trainer;

/// States of users' callbacks and loggers by their names in the Trainer; the slots save under keys
/// of their own.
StateDict callback_states(const Trainer& trainer);

/// Gives each callback its state. When one refuses, those before it get back what they had, and
/// what it threw is thrown on.
void load_callback_states(const Trainer& trainer, const StateDict& states);

/// What a checkpoint holds of one of the Trainer's callbacks; null: nothing.
const StateValue* state_of(const Trainer& trainer,
                           const Callback& callback,
                           const StateDict& checkpoint);

}  // namespace rondo
