// What the checkpoint slot does when a checkpoint is loaded.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <exception>

#include "callbacks/callback_states.h"
#include "callbacks/checkpoint_callback.h"
#include "callbacks/hooks.h"
#include "checkpoint/checkpoint_file.h"
#include "checkpoint/checkpoint_index.h"
#include "checkpoint/checkpoint_name.h"
#include "checkpoint/partial_state.h"
#include "core/error.h"
#include "core/version.h"
#include "trainer/trainer.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

struct Version {
  int64_t major_number = 0;
  int64_t minor_number = 0;
};

Version version_of(const std::string& text) {
  Version version;
  if (std::sscanf(text.c_str(), "%ld.%ld", &version.major_number, &version.minor_number) != 2) {
    throw CheckpointError(fmt::format("\"{}\" is not a version", text));
  }
  return version;
}

void check_version(const Trainer& trainer, const StateDict& state) {
  const StateValue* saved = state.find("__metadata__/version");
  if (saved == nullptr || saved->as_string().find('+') != std::string::npos) {
    return;  // not written by rondo, or a local build: nothing to compare with
  }
  const Version then = version_of(saved->as_string());
  const Version now = version_of(kVersion);
  if (then.major_number == now.major_number && then.minor_number == now.minor_number) {
    return;
  }
  const std::string what = fmt::format(
      "the checkpoint was written by rondo {}, this is rondo {}", saved->as_string(), kVersion);
  if (trainer.options().checkpoint.strict_version) {
    throw CheckpointError(what + "; checkpoint.strict_version = false loads it all the same");
  }
  trainer.log().warning(what);
}

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

bool holds_model(const StateDict& state) {
  const StateValue* const model = state.find("model");
  return model != nullptr && model->is_dict() && !model->as_dict().empty();
}

/// Leaves of another run's state what the options ask for, in this run's names.
/// \return true when that is a part of the model
bool choose(Trainer& trainer, const LoadOptions& options, StateDict& state) {
  adopt_module_state(state);  // first: names are chosen among those of a run
  std::vector<std::pair<std::string, std::string>> names;
  for (const std::vector<std::string>& pair : options.rename) {
    names.emplace_back(pair.at(0), pair.at(1));
  }
  warn_unmatched(trainer, "rename", rename_parameters(state, names));
  std::vector<std::string> include = options.include;
  if (options.weights_only) {
    include = {"model"};
  }
  const EntryFilter filter(include, options.ignore);
  warn_unmatched(trainer, "include and ignore", filter.unmatched(state));
  const StateValue* metadata = state.find("__metadata__");
  StateDict kept = metadata != nullptr && metadata->is_dict() ? metadata->as_dict() : StateDict{};
  if (!filter("rng")) {
    kept.erase("environment");  // the run is another one: no bits to go on with
  }
  state.erase("__metadata__");
  const bool gives_model = holds_model(take_entries(state, {}, filter));
  const StateDict own = live_state(trainer);
  trainer.log().info(fmt::format(
      "a part of {} is loaded; {}", options.path.string(), describe_choice(state, own, filter)));
  state = take_entries(state, own, filter);
  if (!kept.empty()) {
    state.set("__metadata__", std::move(kept));
  }
  return gives_model;
}

}  // namespace

void CheckpointCallback::load(Trainer& trainer, const LoadFrom& from) {
  settle(trainer, /*waits=*/true);
  if (from.path()) {
    load_file(trainer, *from.path(), nullptr);
    return;
  }
  const bool takes_newest = !from.is_nothing() && options_.autoload_last_checkpoint;
  const Paths own = takes_newest ? index_->resumable() : Paths{};
  if (!own.empty()) {
    warn_of_branch(trainer, own.back());
    load_newest(trainer, own);
  } else if (!from.is_nothing() && !options_.load.path.empty()) {
    load_file(trainer, options_.load.path, &options_.load);
  } else {
    trainer.call(hooks::on_before_load_checkpoint, static_cast<const fs::path*>(nullptr));
  }
}

void CheckpointCallback::load(Trainer& trainer, const fs::path& path, StateDict state) {
  settle(trainer, /*waits=*/true);
  trainer.call(hooks::on_before_load_checkpoint, &path);
  distribute(trainer, path, state);
}

void CheckpointCallback::load_file(Trainer& trainer,
                                   const fs::path& path,
                                   const LoadOptions* options) {
  trainer.call(hooks::on_before_load_checkpoint, &path);
  StateDict state = read_checkpoint(path);
  const bool keeps_own_model = options != nullptr && !choose(trainer, *options, state);
  distribute(trainer, path, state, keeps_own_model);
}

void CheckpointCallback::warn_of_branch(const Trainer& trainer, const fs::path& newest) const {
  const fs::path last_saved = index_->listed().back();
  if (last_saved != newest) {
    trainer.log().warning(
        fmt::format("{} is taken, the newest by update, but the run's last save was {}, after it "
                    "had gone back: --checkpoint {} goes on from that one",
                    newest.string(),
                    last_saved.string(),
                    last_saved.string()));
  }
}

void CheckpointCallback::load_newest(Trainer& trainer, const Paths& best_last) {
  std::exception_ptr newest_error;
  for (auto path = best_last.rbegin(); path != best_last.rend(); ++path) {
    trainer.call(hooks::on_before_load_checkpoint, &*path);
    StateDict state;
    try {
      state = read_checkpoint(*path);
    } catch (const CheckpointError&) {
      trainer.log().warning(
          fmt::format("{}; trying the checkpoint before it", describe(std::current_exception())));
      newest_error = newest_error ? newest_error : std::current_exception();
      continue;
    }
    distribute(trainer, *path, state);
    return;
  }
  try {
    std::rethrow_exception(newest_error);
  } catch (const CheckpointError&) {
    std::throw_with_nested(CheckpointError(
        fmt::format("none of the {} checkpoints in {} can be read; to begin afresh all the same, "
                    "load nothing: --checkpoint none",
                    best_last.size(),
                    index_->file().string())));
  }
}

void CheckpointCallback::distribute(Trainer& trainer,
                                    const fs::path& path,
                                    StateDict& state,
                                    bool keeps_own_model) {
  adopt_module_state(state);
  trainer.call(hooks::preprocess_checkpoint, state);
  const StateDict& checked = state;
  check_version(trainer, checked);
  trainer.call(hooks::check_checkpoint, checked);
  if (const StateValue* callbacks = checked.find("callbacks")) {
    load_callback_states(trainer, callbacks->as_dict());
  }
  trainer.call(hooks::on_load_checkpoint, checked);
  trainer.state().has_weights |= !keeps_own_model && holds_model(checked);
  sound_.note_buffers(trainer.state().model->module());
  trainer.state().last_checkpoint = path;
  saved_update_ = trainer.state().timestamp.update;
  trainer.log().info(fmt::format("loaded {}", path.string()));
}

}  // namespace rondo
