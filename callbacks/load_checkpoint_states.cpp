#include "callbacks/load_checkpoint_states.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

LoadCheckpointStates::LoadCheckpointStates(const Options& options) : options_(options) {
  detail::require(
      !options.states.empty(), "LoadCheckpointStates.states", "at least one section", "none");
}

void LoadCheckpointStates::preprocess_checkpoint(Trainer& trainer, StateDict& state) {
  const auto& entries = trainer.callbacks().entries();
  const bool is_own = std::any_of(entries.begin(), entries.end(), [&](const auto& entry) {
    return entry.callback.get() == this && state.contains("callbacks/" + entry.name);
  });
  if (is_own) {
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
