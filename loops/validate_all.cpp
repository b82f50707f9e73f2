#include "loops/validate_all.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <set>
#include <utility>

#include "callbacks/core/fetched_checkpoint.h"
#include "callbacks/core/validation_callback.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/glob.h"
#include "loops/validation_run.h"
#include "remote/remote_address.h"
#include "trainer/trainer.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

/// The loop of validations: the caller's where there is one, else the Trainer's own, or that of its
/// training loop.
Loop& validation_loop(Trainer& trainer, ValidationLoop* given) {
  if (given != nullptr) {
    return *given;
  }
  Loop& own = trainer.slot<Loop>();
  auto* training = dynamic_cast<TrainingLoop*>(&own);
  return training != nullptr ? training->validation_loop() : own;
}

/// The values that carry the scope of one of the loaders.
Metrics of_scopes(const Metrics& all, const std::vector<std::string>& scopes) {
  Metrics found;
  for (const Metrics::Item& item : all.items()) {
    const bool is_meant = std::any_of(scopes.begin(), scopes.end(), [&](const std::string& scope) {
      return item.first.compare(0, scope.size() + 1, scope + "/") == 0;
    });
    if (is_meant && item.first.find("/val_loss") == std::string::npos) {
      found.set(item.first, item.second);
    }
  }
  return found;
}

/// Forgets older values of a scope.
void forget(Metrics& metrics, const std::string& scope) {
  std::vector<Metrics::Item>& items = metrics.items();
  items.erase(std::remove_if(items.begin(),
                             items.end(),
                             [&](const Metrics::Item& item) {
                               return item.first.compare(0, scope.size() + 1, scope + "/") == 0;
                             }),
              items.end());
}

/// Takes links away, such as `latest`, whose files are there by their own names. A path that a run
/// deletes meanwhile has no canonical form: it is left to whoever reads it.
void drop_links(Paths& found) {
  std::error_code gone;
  std::set<fs::path> files;
  for (const fs::path& path : found) {
    if (!fs::is_symlink(path, gone)) {
      files.insert(fs::canonical(path, gone));
    }
  }
  const auto is_known = [&](const fs::path& path) {
    return fs::is_symlink(path, gone) && files.count(fs::canonical(path, gone)) > 0;
  };
  found.erase(std::remove_if(found.begin(), found.end(), is_known), found.end());
}

void require_some(bool are_there, const std::string& glob) {
  if (!are_there) {
    throw IoError(
        fmt::format("no checkpoint matches \"{}\" (wildcards work in the last part only)", glob),
        0);
  }
}

/// Runs every loader with the model as it is.
void run(Trainer& trainer, const Loaders& loaders, Loop& loop) {
  ValidationRun validation(trainer, loaders, loop, std::nullopt, /*is_last=*/true);
  std::exception_ptr error;
  try {
    while (validation.advance()) {
    }
  } catch (...) {
    error = validation.fail(std::current_exception());
  }
  if (error) {
    std::rethrow_exception(error);
  }
}

}  // namespace

LoadFrom to_evaluate(const Trainer& trainer, const LoadFrom& from) {
  return from.path() || !trainer.state().has_trained ? from : LoadFrom::nothing();
}

void require_trained(const Trainer& trainer, const LoadFrom& from) {
  const State& state = trainer.state();
  const UntrainedWeights policy = trainer.options().untrained;
  const bool are_trained = state.has_trained || state.has_weights || state.model->is_from_file();
  if (from.is_nothing() || are_trained || policy == UntrainedWeights::Accept) {
    return;
  }
  const CheckpointOptions& options = trainer.options().checkpoint;
  const fs::path& root =
      options.checkpoint_root.empty() ? trainer.options().model_dir : options.checkpoint_root;
  const std::string what =
      fmt::format("there is no checkpoint in {}, so these weights are untrained", root.string());
  if (policy == UntrainedWeights::Refuse) {
    Fault fault;
    fault.message = what + "; train them first, name a file with --checkpoint, or add --untrained";
    throw ConfigError(std::move(fault));
  }
  trainer.log().warning(what + "; LoadFrom::nothing() evaluates them without this warning");
}

Metrics validate(Trainer& trainer,
                 const DataLoader& loader,
                 const LoadFrom& from,
                 ValidationLoop* own) {
  Loop& loop = validation_loop(trainer, own);
  const std::string scope =
      trainer.metric_log().scope_path() + trainer.metric_log().scope_of(loader);
  forget(trainer.state().last_metrics, scope);
  const bool is_whole = ValidateStage(trainer, loader, loop, to_evaluate(trainer, from)).run();
  return is_whole ? of_scopes(trainer.state().last_metrics, {scope}) : Metrics();
}

std::vector<std::string> scopes_of(Trainer& trainer, const Loaders& loaders) {
  std::vector<std::string> scopes;
  for (const DataLoader& loader : loaders) {
    scopes.push_back(trainer.metric_log().scope_of(loader));
  }
  for (const ValidationCallback* callback : validation_callbacks(trainer)) {
    scopes.push_back(callback->scope());
  }
  return scopes;
}

bool has_validations(const Trainer& trainer, const Loaders& loaders) {
  return !loaders.empty() || !validation_callbacks(trainer).empty();
}

ValidationRow evaluate_loaders(Trainer& trainer, const Loaders& loaders, ValidationLoop* own) {
  trainer.state().last_metrics = {};
  run(trainer, loaders, validation_loop(trainer, own));
  return {trainer.state().last_checkpoint,
          trainer.state().global_step(),
          of_scopes(trainer.state().last_metrics, scopes_of(trainer, loaders))};
}

void enter_validate_all(Trainer& trainer,
                        const Loaders& loaders,
                        const Paths& paths,
                        const std::function<void()>& work,
                        ValidationLoop* own) {
  if (trainer.state().communicator->world_size() > 1) {
    throw UsageError("validate_all evaluates in one process: start it without ranks");
  }
  Cleanup cleanup;
  std::exception_ptr error;
  try {
    Loop& loop = validation_loop(trainer, own);
    trainer.call(hooks::on_enter_validate_all, cleanup, loaders, loop, paths);
    work();
  } catch (...) {
    error = std::current_exception();
  }
  error = cleanup.close(std::move(error));
  if (error) {
    std::rethrow_exception(error);
  }
}

void write_table(const Trainer& trainer, const ValidationTable& table) {
  const fs::path& directory = trainer.state().artifact_dir;
  write_atomically(*real_file_system(), directory / "validate_all.csv", table.to_csv());
  write_atomically(*real_file_system(), directory / "validate_all.json", table.to_json());
}

ValidationTable validate_all(Trainer& trainer, const Loaders& loaders) {
  require_distinct_labels(loaders);
  ValidationTable table;
  if (!has_validations(trainer, loaders)) {
    trainer.log().warning("validate_all has no loader: there is nothing to evaluate");
    return table;
  }
  enter_validate_all(trainer, loaders, {}, [&] {
    const LoadFrom from = to_evaluate(trainer, {});
    trainer.load_checkpoint(from);
    require_trained(trainer, from);
    ValidationRow row = evaluate_loaders(trainer, loaders);
    if (!trainer.stops_now()) {  // else it may not have seen every batch
      table.rows.push_back(std::move(row));
    }
  });
  write_table(trainer, table);
  return table;
}

int64_t step_in_name(const fs::path& path, const CheckpointName& run) {
  const std::string name = path.filename().string();
  if (const auto step = run.match(name)) {
    return step->step;
  }
  constexpr const char* kDigits = "0123456789";
  constexpr size_t kMost = 18;  // digits that fit
  const std::string stem = name.substr(0, name.find('.'));
  const size_t last = stem.find_last_of(kDigits);
  if (last == std::string::npos) {
    return -1;
  }
  const size_t before = stem.find_last_not_of(kDigits, last);
  const size_t first = before == std::string::npos ? 0 : before + 1;
  return std::stoll(stem.substr(first, std::min(last + 1 - first, kMost)));
}

Paths matching_checkpoints(const std::vector<std::string>& globs,
                           const CheckpointName& run,
                           const OpenRemoteStore& open) {
  Paths found;
  std::error_code gone;  // a run may delete what was listed
  for (const std::string& glob : globs) {
    if (is_remote(glob)) {
      const std::vector<std::string> addresses = matching_addresses(glob, open);
      require_some(!addresses.empty(), glob);
      found.insert(found.end(), addresses.begin(), addresses.end());
      continue;
    }
    const fs::path pattern(glob);
    const fs::path directory = pattern.has_parent_path() ? pattern.parent_path() : fs::path(".");
    const size_t before = found.size();
    for (const std::string& name : real_file_system()->list(directory)) {
      const bool is_file = fs::is_regular_file(directory / name, gone);
      if (is_file && glob_match(pattern.filename().string(), name)) {
        found.push_back(pattern.has_parent_path() ? directory / name : fs::path(name));
      }
    }
    require_some(found.size() > before, glob);
  }
  drop_links(found);
  std::stable_sort(found.begin(), found.end(), [&](const fs::path& a, const fs::path& b) {
    const int64_t x = step_in_name(a, run);
    const int64_t y = step_in_name(b, run);
    return x != y ? x < y : a < b;
  });
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace rondo
