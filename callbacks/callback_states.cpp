#include "callbacks/callback_states.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

using Entry = CallbackMap::Entry;
using Undo = std::vector<std::pair<const Entry*, StateDict>>;

constexpr const char* kSubject = "subject";

bool is_slot(const Entry& entry) {
  return dynamic_cast<const CoreCallback*>(entry.callback.get()) != nullptr;
}

/// The tensors that are saved with a callback's state.
NamedTensors saved_tensors(const Entry& entry) {
  return is_slot(entry) ? NamedTensors() : tensors_of(entry);
}

void add_new(StateDict& state, const Entry& entry, const std::string& name, StateValue value) {
  if (state.find(name) != nullptr) {
    throw UsageError(
        fmt::format("callback \"{}\" saves \"{}\" twice: names of save_state() and "
                    "captured_state() must differ, and \"subject\" is reserved for state_subject()",
                    entry.name,
                    name));
  }
  state.set(name, std::move(value));
}

/// `save_state` and tensors of one callback.
StateDict state_of(const Entry& entry) {
  StateDict state = entry.callback->save_state();
  for (const NamedTensor& tensor : saved_tensors(entry)) {
    add_new(state, entry, tensor.first, tensor.second.detach());
  }
  return state;
}

/// Takes what is loaded in place out of `state`, as pairs of where to and where from.
std::vector<std::pair<at::Tensor, at::Tensor>> take_tensors(const Entry& entry, StateDict& state) {
  std::vector<std::pair<at::Tensor, at::Tensor>> transfers;
  for (const NamedTensor& tensor : saved_tensors(entry)) {
    const std::string expected = StateValue(tensor.second).kind();
    const StateValue* saved = state.find(tensor.first);
    const std::string found = saved == nullptr ? "nothing" : saved->kind();
    if (found != expected) {
      throw CheckpointError(
          fmt::format("\"{}\": expected {}, found {}", tensor.first, expected, found));
    }
    transfers.emplace_back(tensor.second.detach(), saved->as_tensor());
    state.erase(tensor.first);
  }
  return transfers;
}

void load_one(const Entry& entry, StateDict state) {
  try {
    const auto transfers = take_tensors(entry, state);
    entry.callback->load_state(state);
    const at::NoGradGuard no_grad;
    for (const auto& [to, from] : transfers) {
      to.copy_(from);
    }
  } catch (...) {
    std::throw_with_nested(
        CheckpointError(fmt::format("the state of callback \"{}\" does not fit", entry.name)));
  }
}

void give_back(const Undo& undo) {
  for (auto old = undo.rbegin(); old != undo.rend(); ++old) {
    load_one(*old->first, old->second);
  }
}

/// Whether a saved state is taken, and what there is to say about that.
struct Match {
  bool is_taken = true;
  std::string warning;
};

Match match(const Trainer& trainer, const Entry& entry, const StateDict& saved) {
  const std::string own = entry.callback->state_subject();
  if (own.empty()) {
    return {};
  }
  if (const StateValue* subject = saved.find(kSubject)) {
    if (subject->as_string() == own) {
      return {};
    }
    return {
        false,
        fmt::format("the checkpoint's state of callback \"{}\" is for {}, not for {}: the callback "
                    "starts from scratch. Labels distinguish several callbacks of a class",
                    entry.name,
                    subject->as_string(),
                    own)};
  }
  const auto& entries = trainer.callbacks().entries();
  const auto of_class = std::count_if(entries.begin(), entries.end(), [&](const Entry& other) {
    return other.class_name == entry.class_name;
  });
  const std::string unknown = fmt::format(
      "the checkpoint is from an older version and does not say what its state of callback \"{}\" "
      "is for; ",
      entry.name);
  if (of_class == 1) {
    return {true, unknown + "assuming it is for " + own};
  }
  return {false,
          unknown + fmt::format("with {} callbacks of class {} it starts from scratch",
                                of_class,
                                entry.class_name)};
}

}  // namespace

NamedTensors tensors_of(const Entry& entry) {
  NamedTensors tensors = entry.callback->captured_state();
  for (const NamedTensor& tensor : tensors) {
    if (!tensor.second.defined()) {
      throw UsageError(
          fmt::format("callback \"{}\": the tensor \"{}\" of captured_state() is undefined; make "
                      "it in setup or "
                      "post_setup",
                      entry.name,
                      tensor.first));
    }
  }
  return tensors;
}

StateDict callback_states(const Trainer& trainer) {
  StateDict states;
  for (const Entry& entry : trainer.callbacks().entries()) {
    StateDict state = state_of(entry);
    if (state.empty()) {
      continue;
    }
    if (std::string subject = entry.callback->state_subject(); !subject.empty()) {
      add_new(state, entry, kSubject, std::move(subject));
    }
    states.set(entry.name, std::move(state));
  }
  return states;
}

const StateValue* state_of(const Trainer& trainer,
                           const Callback& callback,
                           const StateDict& checkpoint) {
  const StateValue* const states = checkpoint.find("callbacks");
  const auto& entries = trainer.callbacks().entries();
  const auto entry = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) {
    return e.callback.get() == &callback;
  });
  if (states == nullptr || entry == entries.end()) {
    return nullptr;
  }
  const StateValue* const state = states->as_dict().find(entry->name);
  return state != nullptr && match(trainer, *entry, state->as_dict()).is_taken ? state : nullptr;
}

void load_callback_states(const Trainer& trainer, const StateDict& states) {
  std::vector<std::string> warnings;
  Undo undo;
  try {
    for (const Entry& entry : trainer.callbacks().entries()) {
      const StateValue* saved = states.find(entry.name);
      if (saved == nullptr) {
        if (!is_slot(entry) && !state_of(entry).empty()) {
          warnings.push_back(fmt::format(
              "the checkpoint has no state of callback \"{}\", which keeps its own", entry.name));
        }
        continue;
      }
      StateDict state = saved->as_dict();
      const Match found = match(trainer, entry, state);
      if (!found.warning.empty()) {
        warnings.push_back(found.warning);
      }
      if (!found.is_taken) {
        continue;
      }
      if (!entry.callback->state_subject().empty()) {
        state.erase(kSubject);
      }
      undo.emplace_back(&entry, deep_copy(state_of(entry)));
      load_one(entry, std::move(state));
    }
  } catch (...) {
    give_back(undo);
    throw;
  }
  for (const std::string& name : states.names()) {
    if (trainer.callbacks().find(name) == nullptr) {
      warnings.push_back(fmt::format(
          "the checkpoint holds state of a callback \"{}\", which this run does not have", name));
    }
  }
  for (const std::string& warning : warnings) {
    trainer.log().warning(warning);
  }
}

}  // namespace rondo
