#include "callbacks/builtin/keep_n_checkpoints.h"

#include <algorithm>

#include "callbacks/callback_states.h"
#include "callbacks/core/checkpoint_callback.h"
#include "checkpoint/checkpoint_index.h"
#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

namespace fs = std::filesystem;

KeepNCheckpoints::KeepNCheckpoints(const Options& options) : options_(options) {
  detail::require(options.n >= 1, "KeepNCheckpoints.n", ">= 1", options.n);
}

void KeepNCheckpoints::on_after_save_checkpoint(Trainer& trainer, const fs::path& path) {
  if (is_loaded_) {
    saved_.clear();  // no fit has looked whose they are
    is_loaded_ = false;
  }
  auto& checkpoints = trainer.slot<CheckpointCallback>();
  saved_.push_back(path.filename().string());
  drop_oldest(checkpoints);
}

void KeepNCheckpoints::drop_oldest(CheckpointCallback& checkpoints) {
  while (static_cast<int64_t>(saved_.size()) > options_.n) {
    checkpoints.remove(checkpoints.root() / saved_.front());
    saved_.pop_front();
  }
}

void KeepNCheckpoints::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) {
  if (!is_loaded_) {
    return;
  }
  is_loaded_ = false;
  auto& checkpoints = trainer.slot<CheckpointCallback>();
  const auto loaded = checkpoints.resumed_from(trainer);
  if (!loaded) {
    saved_.clear();  // those of another run
    return;
  }
  saved_.push_back(loaded->filename().string());  // the list was saved before its own file was
  const Paths own = checkpoints.indexed();
  std::deque<std::string> known;
  for (const std::string& name : saved_) {
    const bool is_own = std::any_of(own.begin(), own.end(), [&](const fs::path& path) {
      return is_same_path(path, checkpoints.root() / name);
    });
    if (is_own && std::find(known.begin(), known.end(), name) == known.end()) {
      known.push_back(name);
    }
  }
  saved_ = std::move(known);
  drop_oldest(checkpoints);  // what a run that died behind its last save could not
}

StateDict KeepNCheckpoints::save_state() const {
  StateList names;
  for (const std::string& name : saved_) {
    names.push_back(name);
  }
  return {{"saved", std::move(names)}};
}

void KeepNCheckpoints::load_state(const StateDict& state) {
  saved_.clear();
  for (const StateValue& name : state.at("saved").as_list()) {
    saved_.push_back(fs::path(name.as_string()).filename().string());  // it was a path once
  }
}

void KeepNCheckpoints::on_load_checkpoint(Trainer& trainer, const StateDict& checkpoint) {
  if (state_of(trainer, *this, checkpoint) != nullptr) {
    is_loaded_ = true;
  }
}

void register_keep_n_checkpoints(Registry<Callback>& registry) {
  registry.add<KeepNCheckpoints>("KeepNCheckpoints", "Deletes this run's older checkpoints.")
      .key("n", &KeepNCheckpoints::Options::n, at_least(1), "checkpoints to keep");
}

}  // namespace rondo
