#include "callbacks/callback_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

using Undo = std::vector<std::pair<Callback*, StateDict>>;

void give_back(const Undo& undo) {
  for (auto old = undo.rbegin(); old != undo.rend(); ++old) {
    old->first->load_state(old->second);
  }
}

void load_one(const CallbackMap::Entry& entry, const StateValue& state) {
  try {
    entry.callback->load_state(state.as_dict());
  } catch (...) {
    std::throw_with_nested(
        CheckpointError(fmt::format("the state of callback \"{}\" does not fit", entry.name)));
  }
}

}  // namespace

StateDict callback_states(const Trainer& trainer) {
  StateDict states;
  for (const CallbackMap::Entry& entry : trainer.callbacks().entries()) {
    StateDict state = entry.callback->save_state();
    if (!state.empty()) {
      states.set(entry.name, std::move(state));
    }
  }
  return states;
}

const StateValue* state_of(const Trainer& trainer,
                           const Callback& callback,
                           const StateDict& checkpoint) {
  const StateValue* const states = checkpoint.find("callbacks");
  const auto& entries = trainer.callbacks().entries();
  const auto entry = std::find_if(entries.begin(), entries.end(), [&](const auto& one) {
    return one.callback.get() == &callback;
  });
  return states != nullptr && entry != entries.end() ? states->as_dict().find(entry->name)
                                                     : nullptr;
}

void load_callback_states(const Trainer& trainer, const StateDict& states) {
  Undo undo;
  try {
    for (const CallbackMap::Entry& entry : trainer.callbacks().entries()) {
      if (const StateValue* state = states.find(entry.name)) {
        undo.emplace_back(entry.callback.get(), deep_copy(entry.callback->save_state()));
        load_one(entry, *state);
      }
    }
  } catch (...) {
    give_back(undo);
    throw;
  }
  for (const std::string& name : states.names()) {
    if (trainer.callbacks().find(name) == nullptr) {
      trainer.log().warning(fmt::format(
          "the checkpoint holds state of a callback \"{}\", which this run does not have", name));
    }
  }
}

}  // namespace rondo
