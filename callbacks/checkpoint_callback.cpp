#include "callbacks/checkpoint_callback.h"

#include <fmt/format.h>

#include "backends/numeric_environment.h"
#include "callbacks/hooks.h"
#include "callbacks/reproducibility_callback.h"
#include "checkpoint/checkpoint_file.h"
#include "checkpoint/checkpoint_index.h"
#include "checkpoint/checkpoint_name.h"
#include "checkpoint/temporary_files.h"
#include "core/error.h"
#include "core/version.h"
#include "loops/run_plan.h"
#include "trainer/trainer.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

/// State of users' callbacks and loggers by their name in the Trainer; the slots save under keys of
/// their own.
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

void load_callback_states(const Trainer& trainer, const StateDict& states) {
  for (const CallbackMap::Entry& entry : trainer.callbacks().entries()) {
    if (const StateValue* state = states.find(entry.name)) {
      entry.callback->load_state(state->as_dict());
    }
  }
  for (const std::string& name : states.names()) {
    if (trainer.callbacks().find(name) == nullptr) {
      trainer.log().warning(fmt::format(
          "the checkpoint holds state of a callback \"{}\", which this run does not have", name));
    }
  }
}

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

}  // namespace

CheckpointCallback::CheckpointCallback() : files_(real_file_system()) {}

CheckpointCallback::~CheckpointCallback() = default;

void CheckpointCallback::pre_setup(Trainer& trainer) {
  options_ = trainer.options().checkpoint;
  if (options_.steps.value() < 0.0) {
    throw UsageError(
        fmt::format("checkpoint.steps: expected 0 or more, got {}", options_.steps.to_string()));
  }
  name_ = std::make_unique<CheckpointName>(options_.checkpoint_name);
  if (options_.checkpoint_root.empty()) {
    options_.checkpoint_root = trainer.options().model_dir;
  }
  files_->create_directories(options_.checkpoint_root);
  for (const fs::path& stale : remove_stale_temporaries(*files_, options_.checkpoint_root)) {
    trainer.log().info(fmt::format("removed {}, which a save that died had left", stale.string()));
  }
  index_ = std::make_unique<CheckpointIndex>(
      files_, trainer.options().model_dir, *name_, options_.checkpoint_root);
  for (const fs::path& vanished : index_->drop_vanished()) {
    trainer.log().warning(fmt::format("{} is listed in the index but is gone", vanished.string()));
  }
}

void CheckpointCallback::on_enter_fit(
    Trainer&, Cleanup&, const DataLoader&, const Loaders&, Loop&) {
  saved_initial_ = false;
}

void CheckpointCallback::on_train_start(
    Trainer& trainer, Model&, const DataLoader&, Loop&, int64_t) {
  if (options_.save_initial_checkpoint && !saved_initial_) {
    save(trainer);
  }
  saved_initial_ = true;
}

void CheckpointCallback::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  const State& state = trainer.state();
  if (options_.steps.is_zero() || !state.phase.is_last) {
    return;
  }
  const bool is_due =
      crosses(options_.steps, state.previous, state.timestamp, state.plan->length());
  if (is_due || state.plan->is_over(state.timestamp) || trainer.stops_now()) {
    trainer.defer({}, [this, &trainer](const std::vector<at::Tensor>&) { save(trainer); });
  }
}

fs::path CheckpointCallback::save(Trainer& trainer) {
  const StateDict state = gather(trainer);
  const Timestamp& time = trainer.state().timestamp;
  CheckpointNameValues values;
  values.step = time.update;
  values.epoch = time.epoch;
  values.batch = time.batch;
  values.sample = time.sample;
  values.run_name =
      fs::absolute(trainer.options().model_dir).lexically_normal().filename().string();
  const fs::path path = free_checkpoint_path(*files_, options_.checkpoint_root, *name_, values);
  write_checkpoint(*files_, path, state);
  index_->append(path);
  trainer.state().last_checkpoint = path;
  trainer.log().info(fmt::format("saved {} at update {}", path.string(), time.update));
  trainer.call(hooks::on_after_save_checkpoint, path);
  return path;
}

StateDict CheckpointCallback::gather(Trainer& trainer) {
  StateDict state;
  trainer.call(hooks::on_save_checkpoint, state);
  StateDict callbacks = callback_states(trainer);
  if (!callbacks.empty()) {
    state.set("callbacks", std::move(callbacks));
  }
  state.set("__metadata__",
            StateDict{{"version", kVersion},
                      {"environment", to_state(current_environment())},
                      {"config", trainer.options().config_text}});
  trainer.call(hooks::postprocess_checkpoint, state);
  return state;
}

void CheckpointCallback::load(Trainer& trainer, const LoadFrom& from) {
  std::optional<fs::path> path = from.path();
  if (!path && !from.is_nothing() && options_.autoload_last_checkpoint) {
    path = index_->newest();
  }
  trainer.call(hooks::on_before_load_checkpoint, path ? &*path : nullptr);
  if (!path) {
    return;
  }
  trainer.log().info(fmt::format("loading {}", path->string()));
  StateDict state = read_checkpoint(*path);
  distribute(trainer, state);
  trainer.state().last_checkpoint = *path;
}

void CheckpointCallback::distribute(Trainer& trainer, StateDict& state) {
  trainer.call(hooks::preprocess_checkpoint, state);
  check_version(trainer, state);
  trainer.call(hooks::on_load_checkpoint, static_cast<const StateDict&>(state));
  if (const StateValue* callbacks = state.find("callbacks")) {
    load_callback_states(trainer, callbacks->as_dict());
  }
}

void CheckpointCallback::check_version(Trainer& trainer, const StateDict& state) const {
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
  if (options_.strict_version) {
    throw CheckpointError(what + "; checkpoint.strict_version = false loads it all the same");
  }
  trainer.log().warning(what);
}

void CheckpointCallback::remove(const fs::path& path) {
  index_->remove(path);
  files_->remove(path);
}

Paths CheckpointCallback::indexed() const {
  return index_->all();
}

}  // namespace rondo
