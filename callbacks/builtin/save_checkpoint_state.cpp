#include "callbacks/builtin/save_checkpoint_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "callbacks/callback_states.h"
#include "callbacks/core/checkpoint_callback.h"
#include "callbacks/core/run_plan.h"
#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

/// The sections to keep, in the order of the file.
StateDict chosen(const StateDict& state, const std::vector<std::string>& sections) {
  for (const std::string& section : sections) {
    state.at(section);
  }
  StateDict kept;
  for (const StateDict::Item& item : state.items()) {
    const bool is_meant = std::find(sections.begin(), sections.end(), item.first) != sections.end();
    if (is_meant || item.first.rfind("__", 0) == 0) {
      kept.set(item.first, item.second);
    }
  }
  return kept;
}

}  // namespace

SaveCheckpointState::SaveCheckpointState(const Options& options) : options_(options) {
  detail::require(options.k >= 1, "SaveCheckpointState.k", ">= 1", options.k);
  detail::require(
      !options.states.empty(), "SaveCheckpointState.states", "at least one section", "none");
}

void SaveCheckpointState::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) {
  if (!is_loaded_) {
    return;
  }
  is_loaded_ = false;
  auto& checkpoints = trainer.slot<CheckpointCallback>();
  const auto loaded = checkpoints.resumed_from(trainer);
  if (!loaded) {
    saves_ = 0;  // another run's
    return;
  }
  // The run may have died behind that save.
  if (trainer.state().writes() && is_due(trainer) &&
      !real_file_system()->exists(part_of(*loaded))) {
    checkpoints.attempt(trainer, [&] { write_part(*loaded); });
  }
}

void SaveCheckpointState::on_after_save_checkpoint(Trainer& trainer, const fs::path& path) {
  is_loaded_ = false;
  ++saves_;
  if (is_due(trainer)) {
    write_part(path);
  }
}

bool SaveCheckpointState::is_due(const Trainer& trainer) const {
  const State& state = trainer.state();
  const int64_t saved = trainer.slot<CheckpointCallback>().saved_update();
  const bool is_last = state.plan != nullptr && state.plan->is_over(state.timestamp) &&
                       saved == state.timestamp.update;
  return saves_ % options_.k == 0 || is_last;
}

fs::path SaveCheckpointState::part_of(const fs::path& checkpoint) const {
  return checkpoint.parent_path() /
         fmt::format("{}_{}", fmt::join(options_.states, "_"), checkpoint.filename().string());
}

void SaveCheckpointState::write_part(const fs::path& checkpoint) const {
  write_checkpoint(*real_file_system(),
                   part_of(checkpoint),
                   chosen(read_checkpoint(checkpoint), options_.states));
}

StateDict SaveCheckpointState::save_state() const {
  return {{"saves", saves_}};
}

void SaveCheckpointState::load_state(const StateDict& state) {
  saves_ = state.at("saves").as_int();
}

void SaveCheckpointState::on_load_checkpoint(Trainer& trainer, const StateDict& checkpoint) {
  if (state_of(trainer, *this, checkpoint) != nullptr) {
    is_loaded_ = true;
    ++saves_;  // its own save, which it was written before
  }
}

void register_save_checkpoint_state(Registry<Callback>& registry) {
  using Options = SaveCheckpointState::Options;
  registry
      .add<SaveCheckpointState>("SaveCheckpointState",
                                "Writes chosen sections of checkpoints to separate files.")
      .key("k", &Options::k, at_least(1), "every k-th save")
      .key("states", &Options::states, "sections to write");
}

}  // namespace rondo
