#include "callbacks/keep_n_checkpoints.h"

#include <algorithm>

#include "callbacks/checkpoint_callback.h"
#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

bool same(const std::filesystem::path& a, const std::filesystem::path& b) {
  return std::filesystem::absolute(a).lexically_normal() ==
         std::filesystem::absolute(b).lexically_normal();
}

}  // namespace

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

void KeepNCheckpoints::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) {
  if (!is_loaded_) {
    return;
  }
  is_loaded_ = false;
  // The list was saved before its own file was written, and maybe by another run.
  if (trainer.state().last_checkpoint) {
    saved_.push_back(*trainer.state().last_checkpoint);
  }
  const Paths own = trainer.slot<CheckpointCallback>("checkpoint").indexed();
  std::deque<std::filesystem::path> known;
  for (const std::filesystem::path& path : saved_) {
    const auto is_this = [&](const std::filesystem::path& other) { return same(path, other); };
    if (std::any_of(own.begin(), own.end(), is_this) &&
        std::none_of(known.begin(), known.end(), is_this)) {
      known.push_back(path);
    }
  }
  saved_ = std::move(known);
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
  is_loaded_ = true;
}

void register_keep_n_checkpoints(Registry<Callback>& registry) {
  registry.add<KeepNCheckpoints>("KeepNCheckpoints", "Deletes this run's older checkpoints.")
      .key("n", &KeepNCheckpoints::Options::n, at_least(1), "checkpoints to keep");
}

}  // namespace rondo
