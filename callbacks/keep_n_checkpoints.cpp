#include "callbacks/keep_n_checkpoints.h"

#include "callbacks/checkpoint_callback.h"
#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

KeepNCheckpoints::KeepNCheckpoints(const Options& options) : options_(options) {
  detail::require(options.n >= 1, "KeepNCheckpoints.n", ">= 1", options.n);
}

void KeepNCheckpoints::on_after_save_checkpoint(Trainer& trainer,
                                                const std::filesystem::path& path) {
  saved_.push_back(path);
  while (static_cast<int64_t>(saved_.size()) > options_.n) {
    trainer.slot<CheckpointCallback>("checkpoint").remove(saved_.front());
    saved_.pop_front();
  }
}

StateDict KeepNCheckpoints::save_state() const {
  StateList paths;
  for (const std::filesystem::path& path : saved_) {
    paths.push_back(path.string());
  }
  return {{"saved", std::move(paths)}};
}

void KeepNCheckpoints::load_state(const StateDict& state) {
  saved_.clear();
  for (const StateValue& path : state.at("saved").as_list()) {
    saved_.push_back(path.as_string());
  }
}

void register_keep_n_checkpoints(Registry<Callback>& registry) {
  registry.add<KeepNCheckpoints>("KeepNCheckpoints", "Deletes this run's older checkpoints.")
      .key("n", &KeepNCheckpoints::Options::n, at_least(1), "checkpoints to keep");
}

}  // namespace rondo
