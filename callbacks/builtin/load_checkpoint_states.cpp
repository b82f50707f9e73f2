#include "callbacks/builtin/load_checkpoint_states.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "callbacks/core/checkpoint_callback.h"
#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

LoadCheckpointStates::LoadCheckpointStates(const Options& options) : options_(options) {
  detail::require(
      !options.states.empty(), "LoadCheckpointStates.states", "at least one section", "none");
}

void LoadCheckpointStates::on_before_load_checkpoint(Trainer& trainer,
                                                     const std::filesystem::path* path) {
  is_own_ = path != nullptr && trainer.slot<CheckpointCallback>().is_listed(*path);
}

void LoadCheckpointStates::preprocess_checkpoint(Trainer& trainer, StateDict& state) {
  if (is_own_) {
    return;
  }
  StateDict kept;
  for (const std::string& section : options_.states) {
    kept.set(section, state.at(section));
  }
  trainer.log().info(fmt::format("loading [{}] of the checkpoint only; it also has [{}]",
                                 fmt::join(options_.states, ", "),
                                 fmt::join(state.names(), ", ")));
  state = std::move(kept);
}

void register_load_checkpoint_states(Registry<Callback>& registry) {
  registry
      .add<LoadCheckpointStates>("LoadCheckpointStates",
                                 "Loads chosen sections of another run's checkpoint.")
      .key("states", &LoadCheckpointStates::Options::states, "sections to load")
      .required();
}

}  // namespace rondo
