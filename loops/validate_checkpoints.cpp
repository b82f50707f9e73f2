// `validate_all` over many files.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <map>
#include <optional>
#include <thread>

#include "callbacks/core/checkpoint_callback.h"
#include "callbacks/core/download_progress.h"
#include "callbacks/core/fetched_checkpoint.h"
#include "callbacks/core/reproducibility_callback.h"
#include "checkpoint/foreign_state.h"
#include "core/error.h"
#include "data/data_dir.h"
#include "loops/predict.h"
#include "loops/validate_all.h"
#include "loops/validation_results.h"
#include "remote/remote_address.h"
#include "remote/remote_error.h"
#include "trainer/trainer.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

constexpr double kBetweenLooks = 0.5;       // seconds
constexpr double kBetweenQuestions = 10.0;  // the same, where a look asks a server

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
                 own == nullptr ? config_with_data(trainer.options().config_text) : "",
                 trainer.slot<CheckpointCallback>().open_remote()) {}

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
    // Only the first is waited for with nothing else on the terminal: it alone shows a bar.
    const OpenRemoteStore& open = trainer_.slot<CheckpointCallback>().open_remote();
    std::future<Content> reading;
    for (size_t i = 0; i < to_do.size() && !trainer_.stops_now(); ++i) {
      std::future<Content> content =
          i == 0 ? read_ahead(to_do, i, with_progress(trainer_, open)) : std::move(reading);
      content.wait();
      reading = read_ahead(to_do, i + 1, open);
      evaluate(to_do[i], content.get());
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

  /// One that was left out is looked at again when it has changed, since it may have been half
  /// written, and when nobody knows whether it has.
  bool is_seen(const fs::path& path) {
    const auto [seen, is_new] = seen_.emplace(path, std::nullopt);
    if (is_new) {
      return false;
    }
    const std::optional<std::string> key = seen->second;
    if (!key || (!key->empty() && *key == results_.key_of(path))) {
      return true;
    }
    seen->second.reset();
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

  /// A checkpoint that was read, and what it is known by.
  struct Content {
    std::string key;
    StateDict state;
    std::exception_ptr error;
  };

  /// The key is asked for first: what is replaced meanwhile is then taken for the old one, and read
  /// again.
  std::future<Content> read_ahead(const Paths& paths, size_t i, OpenRemoteStore open) const {
    if (i >= paths.size()) {
      return {};
    }
    return std::async(std::launch::async, [this, path = paths[i], open = std::move(open)] {
      Content content;
      content.key = results_.key_of(path);
      try {
        content.state = read_named_checkpoint(path, trainer_.options().model_dir, open);
      } catch (const RemoteError&) {
        content.key.clear();  // the same object may come whole the next time
        content.error = std::current_exception();
      } catch (...) {
        content.error = std::current_exception();
      }
      return content;
    });
  }

  void evaluate(const fs::path& path, Content content) {
    bool knows_update = false;
    try {
      if (content.error) {
        std::rethrow_exception(content.error);
      }
      knows_update = is_run_state(content.state) && content.state.contains("global_step");
      trainer_.slot<CheckpointCallback>().load(trainer_, path, std::move(content.state));
    } catch (const Error&) {
      table_.skipped.push_back({path, describe(std::current_exception())});
      trainer_.log().error(
          fmt::format("left out {}: {}", path.string(), table_.skipped.back().reason));
      seen_[path] = content.key;
      return;
    }
    ValidationRow row = evaluate_loaders(trainer_, loaders_, own_);
    if (!knows_update) {  // weights alone, from elsewhere
      row.step = step_in_name(path, name_);
    }
    if (!trainer_.stops_now()) {  // else it may not have seen every batch
      results_.add(row, content.key);
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
  std::map<fs::path, std::optional<std::string>> seen_;  // the keys of those that were left out
};

/// \return false when the run is stopped meanwhile
bool wait_for_new_files(Trainer& trainer, double seconds) {
  constexpr double kPoll = 0.05;
  for (double waited = kPoll; waited <= seconds && !trainer.stops_now(); waited += kPoll) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kPoll));
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
    const double pause = options.seconds_between_looks.value_or(kBetweenLooks);
    while (options.watch && wait_for_new_files(trainer, pause)) {
      evaluation.run(found_so_far(find));
    }
  };
  enter_validate_all(trainer, loaders, paths, evaluate, own);
  ValidationTable table = std::move(evaluation).table();
  write_table(trainer, table);
  return table;
}

ValidationTable validate_matching(Trainer& trainer,
                                  const Loaders& loaders,
                                  const std::vector<std::string>& globs,
                                  ValidateAllOptions options,
                                  ValidationLoop* own) {
  const bool asks_servers = std::any_of(
      globs.begin(), globs.end(), [](const std::string& glob) { return is_remote(glob); });
  if (asks_servers && !options.seconds_between_looks) {
    options.seconds_between_looks = kBetweenQuestions;
  }
  const CheckpointName name(trainer.options().checkpoint.checkpoint_name);
  const OpenRemoteStore& open = trainer.slot<CheckpointCallback>().open_remote();
  return validate_checkpoints(
      trainer, loaders, [&] { return matching_checkpoints(globs, name, open); }, options, own);
}

ValidationTable validate_all(Trainer& trainer,
                             const Loaders& loaders,
                             const std::vector<std::string>& globs,
                             ValidationLoop& loop,
                             const ValidateAllOptions& options) {
  const RngScope rng(trainer);
  return validate_matching(trainer, loaders, globs, options, &loop);
}

}  // namespace rondo
