// `validate_all` over many files.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <optional>
#include <thread>

#include "callbacks/core/checkpoint_callback.h"
#include "callbacks/core/fetched_checkpoint.h"
#include "callbacks/core/reproducibility_callback.h"
#include "checkpoint/foreign_state.h"
#include "core/error.h"
#include "data/data_dir.h"
#include "loops/predict.h"
#include "loops/validate_all.h"
#include "loops/validation_results.h"
#include "trainer/trainer.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

void check(const ValidateAllOptions& options) {
  if (options.every < 1 || options.since < 0) {
    throw UsageError(fmt::format("validate_all: expected every >= 1 and since >= 0, got {} and {}",
                                 options.every,
                                 options.since));
  }
}

/// A resolved config with what it leaves to the environment; "" when there is none.
std::string config_with_data(const std::string& config) {
  return config.empty() ? "" : config + "\n# " + default_data_dir().string();
}

class CheckpointEvaluation {
 public:
  CheckpointEvaluation(Trainer& trainer,
                       const Loaders& loaders,
                       const ValidateAllOptions& options,
                       ValidationLoop* own)
      : trainer_(trainer),
        loaders_(loaders),
        options_(options),
        own_(own),
        name_(trainer.options().checkpoint.checkpoint_name),
        results_(trainer.options().model_dir,
                 scopes_of(trainer, loaders),
                 own == nullptr ? config_with_data(trainer.options().config_text) : "") {}

  /// Evaluates those of `paths` that are meant and were not seen before.
  void run(const Paths& paths) {
    const size_t rows_before = table_.rows.size();
    const Paths to_do = select(paths);
    if (const size_t known = table_.rows.size() - rows_before; known > 0) {
      trainer_.log().info(
          fmt::format("{} checkpoints are evaluated already, see validate_all.jsonl; --force "
                      "evaluates them again",
                      known));
    }
    std::future<StateDict> reading;
    for (size_t i = 0; i < to_do.size() && !trainer_.stops_now(); ++i) {
      std::future<StateDict> state = i == 0 ? read_ahead(to_do, i) : std::move(reading);
      state.wait();
      reading = read_ahead(to_do, i + 1);
      evaluate(to_do[i], state);
    }
  }

  ValidationTable table() && {
    std::stable_sort(table_.rows.begin(), table_.rows.end(), [](const auto& a, const auto& b) {
      return a.step < b.step;
    });
    return std::move(table_);
  }

 private:
  /// The rows that are known go into the table.
  Paths select(const Paths& paths) {
    Paths selected;
    for (const fs::path& path : paths) {
      if (!is_meant(step_in_name(path, name_)) || is_seen(path)) {
        continue;
      }
      if (const auto known = options_.force ? std::nullopt : results_.find(path)) {
        table_.rows.push_back(*known);
      } else {
        selected.push_back(path);
      }
    }
    return selected;
  }

  /// One that was left out is looked at again when it has changed: it may have been half written.
  bool is_seen(const fs::path& path) {
    const auto [seen, is_new] = seen_.emplace(path, "");
    if (is_new) {
      return false;
    }
    if (seen->second.empty() || seen->second == results_.key_of(path)) {
      return true;
    }
    seen->second.clear();
    const auto is_it = [&](const SkippedCheckpoint& skipped) { return skipped.checkpoint == path; };
    table_.skipped.erase(std::remove_if(table_.skipped.begin(), table_.skipped.end(), is_it),
                         table_.skipped.end());
    return false;
  }

  /// Files without a number in their names are meant as long as nobody asks for numbers.
  bool is_meant(int64_t step) const {
    const bool is_asked = options_.since > 0 || options_.every > 1;
    return !is_asked || (step >= options_.since && step % options_.every == 0);
  }

  std::future<StateDict> read_ahead(const Paths& paths, size_t i) const {
    if (i >= paths.size()) {
      return {};
    }
    return std::async(std::launch::async,
                      [path = paths[i], scratch = trainer_.options().model_dir] {
                        return read_named_checkpoint(path, scratch);
                      });
  }

  void evaluate(const fs::path& path, std::future<StateDict>& read) {
    const std::string as_it_is = results_.key_of(path);
    bool knows_update = false;
    try {
      StateDict state = read.get();
      knows_update = is_run_state(state) && state.contains("global_step");
      trainer_.slot<CheckpointCallback>().load(trainer_, path, std::move(state));
    } catch (const Error&) {
      table_.skipped.push_back({path, describe(std::current_exception())});
      trainer_.log().error(
          fmt::format("left out {}: {}", path.string(), table_.skipped.back().reason));
      seen_[path] = as_it_is;
      return;
    }
    ValidationRow row = evaluate_loaders(trainer_, loaders_, own_);
    if (!knows_update) {  // weights alone, from elsewhere
      row.step = step_in_name(path, name_);
    }
    if (!trainer_.stops_now()) {  // else it may not have seen every batch
      results_.add(row);
      table_.rows.push_back(std::move(row));
    }
  }

  Trainer& trainer_;
  const Loaders& loaders_;
  const ValidateAllOptions& options_;
  ValidationLoop* own_;
  const CheckpointName name_;
  ValidationResults results_;
  ValidationTable table_;
  std::map<fs::path, std::string> seen_;  // what those that were left out were like, else ""
};

/// \return false when the run is stopped meanwhile
bool wait_for_new_files(Trainer& trainer) {
  constexpr std::chrono::milliseconds kBetweenLooks(500);
  constexpr std::chrono::milliseconds kPoll(50);
  for (auto waited = kPoll; waited <= kBetweenLooks && !trainer.stops_now(); waited += kPoll) {
    std::this_thread::sleep_for(kPoll);
  }
  return !trainer.stops_now();
}

Paths found_so_far(const std::function<Paths()>& find) {
  try {
    return find();
  } catch (const IoError&) {
    return {};
  }
}

}  // namespace

ValidationTable validate_checkpoints(Trainer& trainer,
                                     const Loaders& loaders,
                                     const std::function<Paths()>& find,
                                     const ValidateAllOptions& options,
                                     ValidationLoop* own) {
  check(options);
  if (trainer.state().plan != nullptr) {
    throw UsageError("validate_all of checkpoints loads each of them: end the fit first");
  }
  require_distinct_labels(loaders);
  if (!has_validations(trainer, loaders)) {
    trainer.log().warning("validate_all has no loader: there is nothing to evaluate");
    return {};
  }
  CheckpointEvaluation evaluation(trainer, loaders, options, own);
  const Paths paths = options.watch ? found_so_far(find) : find();
  if (paths.empty() && !options.watch) {
    trainer.log().warning("validate_all has no checkpoint: there is nothing to evaluate");
    return {};
  }
  const auto evaluate = [&] {
    evaluation.run(paths);
    while (options.watch && wait_for_new_files(trainer)) {
      evaluation.run(found_so_far(find));
    }
  };
  enter_validate_all(trainer, loaders, paths, evaluate, own);
  ValidationTable table = std::move(evaluation).table();
  write_table(trainer, table);
  return table;
}

ValidationTable validate_all(Trainer& trainer,
                             const Loaders& loaders,
                             const std::vector<std::string>& globs,
                             ValidationLoop& loop,
                             const ValidateAllOptions& options) {
  const RngScope rng(trainer);
  const CheckpointName name(trainer.options().checkpoint.checkpoint_name);
  return validate_checkpoints(
      trainer, loaders, [&] { return matching_checkpoints(globs, name); }, options, &loop);
}

}  // namespace rondo
