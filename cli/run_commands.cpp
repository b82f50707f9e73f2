#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <vector>

#include "cli/child_process.h"
#include "cli/commands.h"
#include "cli/load_run.h"
#include "cli/signals.h"
#include "cli/supervisor.h"
#include "core/error.h"
#include "core/file_descriptor.h"
#include "core/json.h"
#include "core/report_file.h"
#include "core/stopwatch.h"
#include "distributed/launch_environment.h"
#include "record/confusion.h"
#include "trainer/auto_options.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

constexpr int kSomeSkipped = 3;  // done, but some checkpoints are not where they should be

bool has_scope(const std::string& name, const std::vector<std::string>& scopes) {
  return std::any_of(scopes.begin(), scopes.end(), [&](const std::string& scope) {
    return name.rfind(scope + "/", 0) == 0;
  });
}

/// "val/accuracy 0.9812, val/loss 0.0734": the metrics of validations, else the training loss.
std::string headline(const Metrics& metrics, const std::vector<std::string>& validations) {
  std::string text;
  for (const Metrics::Item& item : metrics.items()) {
    const bool is_meant = has_scope(item.first, validations) &&
                          item.first.find("/val_loss") == std::string::npos &&
                          !is_confusion(item.first);
    if (const auto number = metrics.number(item.first); is_meant && number) {
      text += fmt::format("{}{} {:.4f}", text.empty() ? "" : ", ", item.first, *number);
    }
  }
  if (const auto loss = metrics.number("loss"); text.empty() && loss) {
    text = fmt::format("loss {:.4f}", *loss);
  }
  return text;
}

void print_summary(const FitResult& result, const std::vector<std::string>& validations) {
  std::string text = result.was_already_done
                         ? fmt::format("this run is done already: {} updates", result.steps)
                         : fmt::format("{}: {} updates in {:.1f} s ({:.0f} per second)",
                                       result.stop_reason.empty() ? "done" : result.stop_reason,
                                       result.steps_now,
                                       result.seconds,
                                       result.steps_per_s);
  if (result.skipped_now > 0) {
    text += fmt::format(", {} of {} updates skipped", result.skipped_now, result.steps_now);
  }
  const std::string metrics = headline(result.metrics, validations);
  text += metrics.empty() ? "" : ", " + metrics;
  if (result.saves.written > 0) {
    text += fmt::format("; {} {}, {:.3f} s pause for each",
                        result.saves.written,
                        result.saves.written == 1 ? "save" : "saves",
                        result.saves.pause_s / static_cast<double>(result.saves.written));
  }
  if (result.saves.failed > 0) {
    text += fmt::format("; {} SAVES FAILED, see the log", result.saves.failed);
  }
  if (result.saves.not_uploaded > 0) {
    text += fmt::format("; {} CHECKPOINTS NOT UPLOADED, see the log", result.saves.not_uploaded);
  }
  if (result.last_checkpoint) {
    text += "; checkpoint " + result.last_checkpoint->string();
  }
  std::error_code error;
  const bool has_summary = std::filesystem::exists(result.artifact_dir / "summary.md", error);
  text += fmt::format("; {} in {}",
                      has_summary ? "summary.md, results.svg and other artifacts" : "artifacts",
                      result.artifact_dir.string());
  for (const EagerSteps& steps : result.eager_steps) {
    text += fmt::format("\nstep {} ran as it is written {} times, in {:.0f} % of the time: {}",
                        steps.name,
                        steps.runs,
                        100.0 * steps.share_of_time,
                        steps.reason);
  }
  std::cerr << text << std::endl;
}

std::string json_of(const std::optional<std::filesystem::path>& path) {
  return path ? json_string(path->string()) : "null";
}

std::string json_of(const EagerSteps& steps) {
  return fmt::format("{{\"name\": {}, \"reason\": {}, \"runs\": {}, \"share_of_time\": {:.4f}}}",
                     json_string(steps.name),
                     json_string(steps.reason),
                     steps.runs,
                     steps.share_of_time);
}

std::string json_of(const FitResult& result) {
  std::vector<std::string> eager;
  for (const EagerSteps& steps : result.eager_steps) {
    eager.push_back(json_of(steps));
  }
  return fmt::format(
      "{{\"steps\": {}, \"steps_now\": {}, \"seconds\": {:.3f}, \"steps_per_s\": {:.3f}, "
      "\"already_done\": {}, \"saves\": {}, \"failed_saves\": {}, \"not_uploaded\": {}, "
      "\"save_pause_s\": {:.6f}, "
      "\"eager_steps\": [{}], \"metrics\": {{{}}}, \"artifact_dir\": {}, "
      "\"last_checkpoint\": {}}}",
      result.steps,
      result.steps_now,
      result.seconds,
      result.steps_per_s,
      result.was_already_done,
      result.saves.written,
      result.saves.failed,
      result.saves.not_uploaded,
      result.saves.pause_s,
      fmt::join(eager, ", "),
      json_members(result.metrics),
      json_string(result.artifact_dir.string()),
      json_of(result.last_checkpoint));
}

/// Of evaluations: what a fit says, about the last of them, and a row for each.
std::string json_of(const ValidationTable& table, const Trainer& trainer, double seconds) {
  const ValidationRow last = table.rows.empty() ? ValidationRow{} : table.rows.back();
  return fmt::format(
      "{{\"steps\": {}, \"seconds\": {:.3f}, \"steps_per_s\": null, \"metrics\": {{{}}}, "
      "\"artifact_dir\": {}, \"last_checkpoint\": {}, {}",
      last.step,
      seconds,
      json_members(last.metrics),
      json_string(trainer.state().artifact_dir.string()),
      json_of(last.checkpoint),
      table.to_json_line().substr(1));
}

[[noreturn]] void missing_section(const CommandLine& line, const char* section) {
  Fault fault;
  fault.position.file = line.config;
  fault.path = fmt::format("trainer.{}", section);
  fault.message = fmt::format("missing table: `rondo {}` needs [trainer.{}]", section, section);
  throw ConfigError(std::move(fault));
}

/// What a command does with a phase, and what it has to say as JSON.
struct PhaseEnd {
  int code = 0;
  std::string json = "";  ///< empty when another process has said it
};

/// Leaves warnings and errors alone of what a run prints.
void silence(TrainerOptions& options) {
  std::string& level = options.logging.log_level;
  level = level == "error" ? level : "warning";
  std::vector<Factory<Logger>>& loggers = options.loggers;
  loggers.erase(std::remove_if(loggers.begin(),
                               loggers.end(),
                               [](const Factory<Logger>& logger) {
                                 return logger.name() == "ProgressLogger";
                               }),
                loggers.end());
}

/// Runs each phase of the file, which must have the section that the command needs. One that does
/// not end well is the last; of the last one the JSON line is printed.
template <class Section>
int run_phases(const CommandLine& line,
               Registries& registries,
               std::optional<Section> RunConfig::*section,
               const char* name,
               const std::function<PhaseEnd(RunConfig&, bool is_last)>& run_one) {
  std::vector<RunConfig> phases = load_run(line, registries);
  for (const RunConfig& phase : phases) {
    if (!(phase.*section)) {
      missing_section(line, name);
    }
  }
  std::ostream& text = line.dry_run && !line.json ? std::cout : std::cerr;
  PhaseEnd end{0, fmt::format("{{\"dry_run\": true, \"phases\": {}}}", phases.size())};
  for (size_t i = 0; i < phases.size() && end.code == 0; ++i) {
    if (phases.size() > 1 && (line.dry_run || !line.quiet)) {
      text << fmt::format("# phase {} of {}", i + 1, phases.size()) << std::endl;
    }
    if (line.dry_run) {
      text << phases[i].init.config_text;
    } else {
      resolve_auto(phases[i], registries);
      if (line.quiet) {
        silence(phases[i].init);
      }
      end = run_one(phases[i], i + 1 == phases.size());
    }
  }
  if (line.json && !end.json.empty()) {
    std::cout << end.json << std::endl;
  }
  return end.code;
}

/// The options of a Trainer that only evaluates.
TrainerOptions to_evaluate(const CommandLine& line, TrainerOptions options) {
  options.optimizer = {};
  options.optimizers = {};
  options.step = {};
  options.schedulers.clear();
  options.untrained = line.untrained ? UntrainedWeights::Accept : UntrainedWeights::Refuse;
  return options;
}

/// The scopes of the loaders that a fit validates with.
std::vector<std::string> validations_of(Trainer& trainer, const Loaders& loaders) {
  std::vector<std::string> scopes;
  for (const DataLoader& loader : loaders) {
    scopes.push_back(trainer.metric_log().scope_of(loader));
  }
  return scopes;
}

/// Keeps the file of the run beside its resolved form.
void keep_as_written(const RunConfig& run, const Trainer& trainer) {
  if (trainer.state().writes()) {
    write_report(trainer.log(),
                 trainer.state().artifact_dir / "trainer_params_as_written.toml",
                 run.as_written);
  }
}

PhaseEnd fit_once(const RunConfig& run, bool is_quiet) {
  Trainer trainer(run.init);
  keep_as_written(run, trainer);
  const StopOnSignal signals(trainer);
  const FitResult result = trainer.fit(run.fit->train, run.fit->val, run.fit->from);
  if (!is_quiet) {
    print_summary(result, validations_of(trainer, run.fit->val));
  }
  const bool lacks_some = signals.exit_code() == 0 && result.saves.not_uploaded > 0;
  return {lacks_some ? kSomeSkipped : signals.exit_code(), json_of(result)};
}

/// Of this process from now on.
void print_nothing() {
  const detail::FileDescriptor nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  ::dup2(nowhere.get(), STDOUT_FILENO);
  ::dup2(nowhere.get(), STDERR_FILENO);
}

/// The checkpoint that was published last; none when there is none.
std::optional<std::filesystem::path> last_published(const RunConfig& run) {
  const auto listed = index_of(run).listed();
  return listed.empty() ? std::nullopt : std::optional(listed.back());
}

/// The update of the newest checkpoint of a run; 0 when there is none.
int64_t newest_update(const RunConfig& run) {
  const auto newest = index_of(run).newest();
  const CheckpointName name(run.init.checkpoint.checkpoint_name);
  const auto step = newest ? name.match(newest->filename().string()) : std::nullopt;
  return step ? step->step : 0;
}

/// One rank that starts again alone would wait for the others for ever.
void require_alone() {
  const auto launched = read_launch_environment();
  if (launched && launched->world_size > 1) {
    throw UsageError(fmt::format(
        "fit --max-restarts is for one process; {} ranks are started again by `rondo launch "
        "--max-restarts`",
        launched->world_size));
  }
}

/// Trains in a process of its own. One that is started again goes on from what its predecessors
/// saved, also when the first one was told what to load.
PhaseEnd fit_supervised(const CommandLine& line, RunConfig& run, bool is_last) {
  require_alone();
  run.init.autorestart.max_num_restarts = line.max_restarts;
  const auto before = last_published(run);
  const auto attempt = [&](int64_t restarts) {
    const auto saved = last_published(run);
    const bool was_told = run.fit->from.path() || run.fit->from.is_nothing();
    if (restarts > 0 && was_told && saved && saved != before) {
      run.fit->from = LoadFrom(*saved);
    }
    const PhaseEnd end = fit_once(run, line.quiet);
    if (line.json && (is_last || end.code != 0)) {
      std::cout << end.json << std::endl;
    }
    return end.code;
  };
  return {supervise(line.max_restarts, attempt, [&] { return newest_update(run); })};
}

/// The run as it evaluates checkpoints, with the batches that its section asks for.
TrainerOptions to_validate_all(const CommandLine& line, const RunConfig& run) {
  TrainerOptions options = to_evaluate(line, run.init);
  if (const std::optional<int64_t> subset = run.validate_all->subset_num_batches) {
    options.loop.eval_steps = Time(*subset);
  }
  return options;
}

/// Evaluates every `line.jobs`-th checkpoint, beginning with number `job`.
PhaseEnd validate_share(const CommandLine& line, RunConfig& run, int64_t job) {
  const Paths all = checkpoints_to_validate(run);
  std::vector<std::string> own;
  for (size_t i = 0; i < all.size(); ++i) {
    if (static_cast<int64_t>(i) % line.jobs == job) {
      own.push_back(all[i].string());
    }
  }
  if (!own.empty()) {
    Trainer trainer(to_validate_all(line, run));
    const StopOnSignal signals(trainer);
    trainer.validate_all(
        run.validate_all->loaders, own, {line.since, line.multiple_of, line.force, false});
  }
  return {};
}

/// Evaluates checkpoints in several processes, which leave their rows in `validate_all.jsonl`. What
/// they tell is left out: what they leave undone this process does, and tells, itself.
/// \return whether all of them did their share
bool validate_in_processes(const CommandLine& line, Registries& registries) {
  std::vector<std::unique_ptr<ChildProcess>> processes;
  for (int64_t job = 0; job < line.jobs; ++job) {
    processes.push_back(std::make_unique<ChildProcess>([&, job] {
      print_nothing();
      CommandLine own = line;
      own.json = false;
      return run_phases(
          own, registries, &RunConfig::validate_all, "validate_all", [&](RunConfig& run, bool) {
            return validate_share(own, run, job);
          });
    }));
  }
  bool are_done = true;
  for (const auto& process : processes) {
    are_done = process->wait().is_done() && are_done;
  }
  return are_done;
}

/// 3 when some checkpoints had to be left out, 1 when all had to.
int exit_code_of(const ValidationTable& table) {
  if (table.skipped.empty()) {
    return 0;
  }
  return table.rows.empty() ? 1 : kSomeSkipped;
}

}  // namespace

int run_fit(const CommandLine& line, Registries& registries) {
  return run_phases(line, registries, &RunConfig::fit, "fit", [&](RunConfig& run, bool is_last) {
    return line.max_restarts == 0 ? fit_once(run, line.quiet) : fit_supervised(line, run, is_last);
  });
}

int run_validate(const CommandLine& line, Registries& registries) {
  return run_phases(line, registries, &RunConfig::validate, "validate", [&](RunConfig& run, bool) {
    const Stopwatch watch;
    Trainer trainer(to_evaluate(line, run.init));
    keep_as_written(run, trainer);
    const StopOnSignal signals(trainer);
    const DataLoader& loader = run.validate->loader;
    ValidationTable table;
    const Metrics metrics = [&] {
      const auto& subset = run.validate->subset_num_batches;
      if (!subset) {
        return trainer.validate(loader, run.validate->from);
      }
      ValidationLoop loop({Time(*subset)});
      return trainer.validate(loader, loop, run.validate->from);
    }();
    if (metrics.empty() && trainer.stop_reason() != nullptr) {
      std::cerr << trainer.stop_reason() << ": no result" << std::endl;
    } else {
      table.rows.push_back(
          {trainer.state().last_checkpoint, trainer.state().global_step(), metrics});
      std::cerr << headline(metrics, {trainer.metric_log().scope_of(loader)}) << std::endl;
    }
    return PhaseEnd{signals.exit_code(), json_of(table, trainer, watch.seconds())};
  });
}

int run_validate_all(const CommandLine& line, Registries& registries) {
  const bool has_jobs = line.jobs > 1 && !line.dry_run;
  const bool are_rows_new = has_jobs && validate_in_processes(line, registries);
  const bool is_forced = line.force && !are_rows_new;
  return run_phases(
      line, registries, &RunConfig::validate_all, "validate_all", [&](RunConfig& run, bool) {
        const Stopwatch watch;
        Trainer trainer(to_validate_all(line, run));
        keep_as_written(run, trainer);
        const StopOnSignal signals(trainer);
        const RunConfig::ValidateAll& all = *run.validate_all;
        const ValidateAllOptions options{line.since, line.multiple_of, is_forced, line.watch};
        const ValidationTable table =
            all.checkpoints ? trainer.validate_all(all.loaders, *all.checkpoints, options)
                            : trainer.validate_all_indexed(all.loaders, options);
        (line.json ? std::cerr : std::cout) << table;
        return PhaseEnd{signals.exit_code() != 0 ? signals.exit_code() : exit_code_of(table),
                        json_of(table, trainer, watch.seconds())};
      });
}

/// The table of a prediction, where there is one.
std::optional<std::string> table_of(const Trainer& trainer) {
  const std::filesystem::path table = trainer.state().artifact_dir / "predictions.csv";
  return std::filesystem::exists(table) ? std::optional(table.string()) : std::nullopt;
}

std::string json_of(const std::optional<std::string>& table) {
  return table ? json_string(*table) : "null";
}

int run_predict(const CommandLine& line, Registries& registries) {
  return run_phases(line, registries, &RunConfig::predict, "predict", [&](RunConfig& run, bool) {
    Trainer trainer(to_evaluate(line, run.init));
    keep_as_written(run, trainer);
    const StopOnSignal signals(trainer);
    const PredictOptions& options = run.predict->options;
    const Outputs outputs = predict(trainer, run.predict->loader, options, run.predict->from);
    if (!options.return_outputs) {
      const std::string folder = (trainer.state().artifact_dir / "predictions").string();
      const std::optional<std::string> table = table_of(trainer);
      std::cerr << "written to " << folder << ", a file a batch" << (table ? ", and " + *table : "")
                << std::endl;
      return PhaseEnd{signals.exit_code(),
                      fmt::format("{{\"folder\": {}, \"table\": {}, \"outputs\": {{}}}}",
                                  json_string(folder),
                                  json_of(table))};
    }
    if (outputs.items().empty() && trainer.stop_reason() != nullptr) {
      return PhaseEnd{signals.exit_code(), "{\"file\": null, \"table\": null, \"outputs\": {}}"};
    }
    const std::string file = (trainer.state().artifact_dir / "predictions.pt").string();
    std::string shapes;
    for (const Outputs::Item& item : outputs.items()) {
      const std::string shape = fmt::format("[{}]", fmt::join(item.second.sizes(), ", "));
      std::cerr << fmt::format("{} {}\n", item.first, shape);
      shapes += fmt::format("{}{}: {}", shapes.empty() ? "" : ", ", json_string(item.first), shape);
    }
    const std::optional<std::string> table = table_of(trainer);
    std::cerr << "written to " << file << (table ? " and " + *table : "") << std::endl;
    return PhaseEnd{signals.exit_code(),
                    fmt::format("{{\"file\": {}, \"table\": {}, \"outputs\": {{{}}}}}",
                                json_string(file),
                                json_of(table),
                                shapes)};
  });
}

}  // namespace rondo
