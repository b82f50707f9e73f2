#include "callbacks/core/loaded_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "callbacks/callback_states.h"
#include "callbacks/hooks.h"
#include "checkpoint/foreign_state.h"
#include "checkpoint/partial_state.h"
#include "core/error.h"
#include "models/model_state.h"
#include "trainer/trainer.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

/// Everybody's state as it is now, with the tensors themselves.
StateDict live_state(Trainer& trainer) {
  StateDict state;
  trainer.call(hooks::on_save_checkpoint, state);
  state.set("callbacks", callback_states(trainer));
  return state;
}

void warn_unmatched(const Trainer& trainer,
                    const char* option,
                    const std::vector<std::string>& globs) {
  if (!globs.empty()) {
    trainer.log().warning(fmt::format("checkpoint.load.{}: nothing in the file matches [\"{}\"]",
                                      option,
                                      fmt::join(globs, "\", \"")));
  }
}

/// Of another program's file: its weights as {"model": …}.
void unwrap(const Trainer& trainer,
            const fs::path& path,
            const std::string& key,
            StateDict& state) {
  const ForeignWeights found = unwrap_weights(state, key);
  const std::string where = found.key.empty() ? "" : fmt::format(" under \"{}\"", found.key);
  const std::string unused =
      found.unused.empty() ? "" : fmt::format("; not used: {}", fmt::join(found.unused, ", "));
  trainer.log().info(fmt::format(
      "{} is not a rondo checkpoint: loading only the weights{}{}", path.string(), where, unused));
}

/// Renames what another program's file holds to this model's names, as far as wrappers made them
/// differ.
void take_off_wrappers(const Trainer& trainer,
                       const std::vector<std::string>& own,
                       StateDict& state) {
  StateDict& model = state.find("model")->as_dict();
  const bool strict = !trainer.options().checkpoint.disable_strict_checkpoint_loading;
  const std::string prefix = take_off_prefix(model, own, strict);
  if (!prefix.empty()) {
    trainer.log().info(fmt::format(
        "the model's names have the prefix \"{}\" in the file; ignoring other names", prefix));
  }
}

void rename(const Trainer& trainer,
            const LoadOptions& options,
            const std::optional<WrapperNames>& wrappers,
            StateDict& state) {
  std::vector<std::pair<std::string, std::string>> names;
  for (const std::vector<std::string>& pair : options.rename) {
    names.emplace_back(wrappers ? wrappers->without(pair.at(0)) : pair.at(0), pair.at(1));
  }
  warn_unmatched(trainer, "rename", rename_parameters(state, names));
}

/// The model's names that the filter takes.
std::vector<std::string> meant_names(const std::vector<std::string>& own,
                                     const EntryFilter& filter) {
  std::vector<std::string> names;
  std::copy_if(own.begin(), own.end(), std::back_inserter(names), [&](const std::string& name) {
    return filter("model/" + name);
  });
  return names;
}

/// The first ones, and how many more there are.
std::string some_names(const std::vector<std::string>& names) {
  constexpr size_t kMost = 6;
  const size_t shown = std::min(names.size(), kMost);
  const std::string list = fmt::format("{}", fmt::join(names.begin(), names.begin() + shown, ", "));
  return shown == names.size() ? list : fmt::format("{} and {} more", list, names.size() - shown);
}

/// \throws CheckpointError  when the file has none of the model's names
void require_some(const std::vector<std::string>& own, const StateDict& state) {
  const StateValue* model = state.find("model");
  if (own.empty()) {
    return;  // nothing is asked for
  }
  if (model == nullptr || !model->is_dict()) {
    throw CheckpointError(
        fmt::format("the checkpoint holds no model: it has [{}]", fmt::join(state.names(), ", ")));
  }
  const StateDict& saved = model->as_dict();
  const auto is_saved = [&saved](const std::string& name) { return saved.contains(name); };
  if (!std::any_of(own.begin(), own.end(), is_saved)) {
    throw CheckpointError(
        fmt::format("none of the model's names is in the file: the model has [{}], the file [{}]; "
                    "checkpoint.load.rename renames entries of the file",
                    some_names(own),
                    some_names(saved.names())));
  }
}

/// Leaves of another run's state what the options ask for.
void choose(Trainer& trainer,
            const LoadOptions& options,
            const EntryFilter& filter,
            StateDict& state) {
  warn_unmatched(trainer, "include and ignore", filter.unmatched(state));
  const StateValue* metadata = state.find("__metadata__");
  StateDict kept = metadata != nullptr && metadata->is_dict() ? metadata->as_dict() : StateDict{};
  if (!filter("rng")) {
    kept.erase("environment");  // the run is another one: no bits to go on with
  }
  state.erase("__metadata__");
  const StateDict own = live_state(trainer);
  trainer.log().info(fmt::format(
      "loaded a part of {}; {}", options.path.string(), describe_choice(state, own, filter)));
  state = take_entries(state, own, filter);
  if (!kept.empty()) {
    state.set("__metadata__", std::move(kept));
  }
}

/// The entries that the options ask for.
EntryFilter filter_of(const LoadOptions& options) {
  return {options.weights_only ? std::vector<std::string>{"model"} : options.include,
          options.ignore};
}

bool prepare(Trainer& trainer, const fs::path& path, const LoadOptions* options, StateDict& state) {
  const bool is_foreign = !is_run_state(state);
  const std::vector<std::string> own = model_state(trainer.state().model->module()).names();
  const EntryFilter filter = filter_of(options != nullptr ? *options : LoadOptions{});
  const std::vector<std::string> meant = meant_names(own, filter);
  std::optional<WrapperNames> wrappers;
  if (is_foreign) {
    unwrap(trainer, path, trainer.options().checkpoint.load.key, state);
    wrappers.emplace(own);
    wrappers->take_off(state.find("model")->as_dict());
  }
  if (options != nullptr) {
    rename(trainer, *options, wrappers, state);
  }
  if (is_foreign) {
    take_off_wrappers(trainer, meant, state);
  }
  require_some(meant, state);
  if (options != nullptr) {
    choose(trainer, *options, filter, state);
  }
  return !meant.empty();
}

}  // namespace

bool prepare_loaded_state(Trainer& trainer,
                          const fs::path& path,
                          const LoadOptions* options,
                          StateDict& state) {
  try {
    return prepare(trainer, path, options, state);
  } catch (const CheckpointError&) {
    std::throw_with_nested(CheckpointError(fmt::format("cannot load {}", path.string())));
  }
}

}  // namespace rondo
