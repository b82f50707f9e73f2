#include "callbacks/builtin/keep_best_checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <numeric>
#include <typeinfo>

#include "callbacks/callback_states.h"
#include "callbacks/core/checkpoint_callback.h"
#include "callbacks/core/loop.h"
#include "callbacks/core/run_plan.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/registry.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

/// Lets a second name for a file replace what is there. \return false on a file system without
/// hard links
bool replace_by_link(FileSystem& files, const fs::path& from, const fs::path& to) {
  for (int attempt = 1;; ++attempt) {
    const fs::path temporary = temporary_name(to);
    std::error_code failed;
    fs::create_hard_link(from, temporary, failed);
    if (failed) {
      return false;
    }
    try {
      files.rename(temporary, to);
      files.remove(temporary);  // it stays when both were names of one file already
      return true;
    } catch (const IoError& error) {
      constexpr int kAttempts = 10;
      if (error.error_number != ENOENT || attempt == kAttempts) {
        throw;
      }  // a process that started took the link for a leftover
    }
  }
}

/// A second name for a file, or a copy on a file system without hard links; replaces what is there.
void duplicate(const fs::path& from, const fs::path& to) {
  FileSystem& files = *real_file_system();
  files.create_directories(to.parent_path());
  if (!replace_by_link(files, from, to)) {
    write_atomically(files, to, files.read(from));
    return;
  }
  files.sync_directory(to.parent_path());
}

/// How many updates lie between two of what happens at this cadence and at the end of a run;
/// nothing when that cannot be told.
std::optional<int64_t> updates_between(const Time& cadence, const RunLength& run) {
  if (cadence.is_zero()) {
    return run.total->count();
  }
  const Time between = counted(cadence, run);
  return between.unit() == TimeUnit::Update ? std::optional(between.count()) : std::nullopt;
}

void warn_when_seldom_judged(const Trainer& trainer, const Loop& loop) {
  const auto* training = dynamic_cast<const TrainingLoop*>(&loop);
  const RunPlan& plan = *trainer.state().plan;
  const RunLength& run = plan.length();
  if (training == nullptr || typeid(plan) != typeid(RunPlan) || !run.total ||
      run.total->unit() != TimeUnit::Update) {
    return;
  }
  if (!plan.validates()) {
    trainer.log().warning(
        "KeepBestCheckpoints keeps nothing: loop.eval_frequency is 0, so nothing is validated");
    return;
  }
  const int64_t last = run.total->count();
  const auto saves = updates_between(trainer.options().checkpoint.steps, run);
  const auto validations = updates_between(training->options().eval_frequency, run);
  if (saves && validations && std::min(*saves, *validations) < last &&
      *saves / std::gcd(*saves, *validations) >= (last + *validations - 1) / *validations) {
    trainer.log().warning(fmt::format(
        "KeepBestCheckpoints chooses from one checkpoint only, that of update {}: saves, every {} "
        "updates, and validations, every {}, are never at the same update before the last. Make "
        "one of checkpoint.steps and loop.eval_frequency a multiple of the other",
        last,
        *saves,
        *validations));
  }
}

}  // namespace

KeepBestCheckpoints::KeepBestCheckpoints(const Options& options)
    : direction_("KeepBestCheckpoints", options.metric, options.direction), n_(options.n) {
  detail::require(options.n >= 1, "KeepBestCheckpoints.n", ">= 1", options.n);
}

void KeepBestCheckpoints::post_setup(Trainer& trainer) {
  direction_.guess(trainer);
}

void KeepBestCheckpoints::on_fit_start(Trainer& trainer,
                                       const DataLoader&,
                                       const Loaders& val,
                                       Loop& loop) {
  direction_.resolve(trainer, val);
  warn_when_seldom_judged(trainer, loop);
  if (!is_loaded_) {
    return;
  }
  is_loaded_ = false;
  const auto loaded = trainer.slot<CheckpointCallback>().resumed_from(trainer);
  if (!loaded) {
    kept_.clear();  // those of another run
    return;
  }
  // The validation of this checkpoint came after its save, and comes again.
  saved_ = *loaded;
  saved_update_ = trainer.state().global_step();
}

void KeepBestCheckpoints::on_after_save_checkpoint(Trainer& trainer, const fs::path& path) {
  saved_ = path;
  saved_update_ = trainer.slot<CheckpointCallback>().saved_update();
  judge(trainer);
}

void KeepBestCheckpoints::run_validation(Trainer& trainer, std::optional<int64_t>, bool) {
  const auto value = trainer.state().last_metrics.number(direction_.metric());
  if (!value && trainer.state().plan != nullptr) {
    trainer.log().warning(
        fmt::format("KeepBestCheckpoints: no validation logged \"{}\"", direction_.metric()));
  }
  if (value && trainer.state().plan != nullptr) {
    value_ = *value;
    validated_update_ = trainer.state().global_step();
    trainer.slot<CheckpointCallback>().attempt(trainer, [&] { judge(trainer); });
  }
}

void KeepBestCheckpoints::judge(Trainer& trainer) {
  if (!trainer.state().writes() || saved_.empty() || saved_update_ != validated_update_ ||
      std::isnan(value_)) {
    return;
  }
  const fs::path directory = trainer.slot<CheckpointCallback>().root() / "best";
  const auto place = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& other) {
    return direction_.is_better(value_, other.value);
  });
  if (place - kept_.begin() < n_) {
    const fs::path copy = directory / saved_.filename();
    duplicate(saved_, copy);
    trainer.log().info(fmt::format("kept {}: {} = {}", copy.string(), direction_.metric(), value_));
    kept_.insert(place, {saved_.filename().string(), value_});
  }
  while (static_cast<int64_t>(kept_.size()) > n_) {
    const std::string name = kept_.back().name;
    kept_.pop_back();
    if (!is_kept_by_any(trainer, name)) {
      real_file_system()->remove(directory / name);
    }
  }
  saved_.clear();
}

bool KeepBestCheckpoints::is_kept_by_any(const Trainer& trainer, const std::string& name) {
  const auto& entries = trainer.callbacks().entries();
  return std::any_of(entries.begin(), entries.end(), [&](const CallbackMap::Entry& entry) {
    const auto* one = dynamic_cast<const KeepBestCheckpoints*>(entry.callback.get());
    return one != nullptr && std::any_of(one->kept_.begin(),
                                         one->kept_.end(),
                                         [&](const Kept& kept) { return kept.name == name; });
  });
}

StateDict KeepBestCheckpoints::save_state() const {
  StateList kept;
  for (const Kept& one : kept_) {
    kept.push_back(StateDict{{"path", one.name}, {"value", one.value}});
  }
  return {{"kept", std::move(kept)}};
}

void KeepBestCheckpoints::load_state(const StateDict& state) {
  std::vector<Kept> kept;
  for (const StateValue& one : state.at("kept").as_list()) {
    const fs::path path = one.as_dict().at("path").as_string();  // it was a whole one once
    kept.push_back({path.filename().string(), one.as_dict().at("value").as_double()});
  }
  kept_ = std::move(kept);
}

void KeepBestCheckpoints::on_load_checkpoint(Trainer& trainer, const StateDict& checkpoint) {
  if (state_of(trainer, *this, checkpoint) != nullptr) {
    is_loaded_ = true;
  }
}

void register_keep_best_checkpoints(Registry<Callback>& registry) {
  using Options = KeepBestCheckpoints::Options;
  registry
      .add<KeepBestCheckpoints>("KeepBestCheckpoints",
                                "Keeps copies of the checkpoints that validated best.")
      .key("metric", &Options::metric, "as it is logged, such as \"val/accuracy\"")
      .required()
      .key("direction",
           &Options::direction,
           one_of({"auto", "min", "max"}),
           "which values are better; auto: what the metric says")
      .key("n", &Options::n, at_least(1), "how many to keep");
}

}  // namespace rondo
