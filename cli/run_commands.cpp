#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <iostream>
#include <vector>

#include "checkpoint/checkpoint_index.h"
#include "checkpoint/checkpoint_name.h"
#include "cli/commands.h"
#include "cli/load_run.h"
#include "cli/signals.h"
#include "cli/supervisor.h"
#include "core/error.h"
#include "core/json.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// "val/accuracy 0.9812, val/loss 0.0734": the metrics of validations, else the training loss.
std::string headline(const Metrics& metrics) {
  std::string text;
  for (const Metrics::Item& item : metrics.items()) {
    const bool is_validation = item.first.find('/') != std::string::npos &&
                               item.first.find("lr/") != 0 &&
                               item.first.find("/val_loss") == std::string::npos;
    if (const auto number = metrics.number(item.first); is_validation && number) {
      text += fmt::format("{}{} {:.4f}", text.empty() ? "" : ", ", item.first, *number);
    }
  }
  if (const auto loss = metrics.number("loss"); text.empty() && loss) {
    text = fmt::format("loss {:.4f}", *loss);
  }
  return text;
}

void print_summary(const FitResult& result) {
  std::string text = result.was_already_done
                         ? fmt::format("this run is done already: {} updates", result.steps)
                         : fmt::format("{}: {} updates in {:.1f} s ({:.0f} per second)",
                                       result.stop_reason.empty() ? "done" : result.stop_reason,
                                       result.steps_now,
                                       result.seconds,
                                       result.steps_per_s);
  const std::string metrics = headline(result.metrics);
  text += metrics.empty() ? "" : ", " + metrics;
  if (result.saves.written > 0) {
    text += fmt::format("; {} saves, {:.3f} s standing still for each",
                        result.saves.written,
                        result.saves.pause_s / static_cast<double>(result.saves.written));
  }
  if (result.saves.failed > 0) {
    text += fmt::format("; {} SAVES FAILED, see the log", result.saves.failed);
  }
  if (result.last_checkpoint) {
    text += "; checkpoint " + result.last_checkpoint->string();
  }
  text += "; artifacts in " + result.artifact_dir.string();
  std::cerr << text << std::endl;
}

std::string json_of(const FitResult& result) {
  std::string metrics;
  for (const Metrics::Item& item : result.metrics.items()) {
    metrics += fmt::format(
        "{}{}: {}", metrics.empty() ? "" : ", ", json_string(item.first), json_value(item.second));
  }
  return fmt::format(
      "{{\"steps\": {}, \"steps_now\": {}, \"seconds\": {:.3f}, \"steps_per_s\": {:.3f}, "
      "\"already_done\": {}, \"saves\": {}, \"failed_saves\": {}, \"save_pause_s\": {:.6f}, "
      "\"metrics\": {{{}}}, \"artifact_dir\": {}, \"last_checkpoint\": {}}}",
      result.steps,
      result.steps_now,
      result.seconds,
      result.steps_per_s,
      result.was_already_done,
      result.saves.written,
      result.saves.failed,
      result.saves.pause_s,
      metrics,
      json_string(result.artifact_dir.string()),
      result.last_checkpoint ? json_string(result.last_checkpoint->string()) : std::string("null"));
}

[[noreturn]] void missing_section(const CommandLine& line, const char* section) {
  Fault fault;
  fault.position.file = line.config;
  fault.path = fmt::format("trainer.{}", section);
  fault.message = fmt::format("missing table: `rondo {}` needs [trainer.{}]", section, section);
  throw ConfigError(std::move(fault));
}

/// Runs each phase of the file, which must have the section that the command needs. One that does
/// not end well is the last.
template <class Section>
int run_phases(const CommandLine& line,
               Registries& registries,
               std::optional<Section> RunConfig::*section,
               const char* name,
               const std::function<int(RunConfig&)>& run_one) {
  std::vector<RunConfig> phases = load_run(line, registries);
  for (const RunConfig& phase : phases) {
    if (!(phase.*section)) {
      missing_section(line, name);
    }
  }
  for (size_t i = 0; i < phases.size(); ++i) {
    if (phases.size() > 1) {
      (line.dry_run ? std::cout : std::cerr)
          << fmt::format("# phase {} of {}", i + 1, phases.size()) << std::endl;
    }
    if (line.dry_run) {
      std::cout << phases[i].init.config_text;
    } else if (const int code = run_one(phases[i]); code != 0) {
      return code;
    }
  }
  return 0;
}

/// The options of a Trainer that only evaluates.
TrainerOptions without_training(TrainerOptions options) {
  options.optimizer = {};
  options.schedulers.clear();
  return options;
}

int fit_once(const CommandLine& line, const RunConfig& run) {
  Trainer trainer(run.init);
  const StopOnSignal signals(trainer);
  const FitResult result = trainer.fit(run.fit->train, run.fit->val, run.fit->from);
  print_summary(result);
  if (line.json) {
    std::cout << json_of(result) << std::endl;
  }
  return signals.exit_code();
}

/// The update of the newest checkpoint of a run; 0 when there is none.
int64_t newest_update(const RunConfig& run) {
  const CheckpointOptions& options = run.init.checkpoint;
  const CheckpointName name(options.checkpoint_name);
  const CheckpointIndex index(
      real_file_system(), run.init.model_dir, name, options.checkpoint_root);
  const auto newest = index.newest();
  const auto step = newest ? name.match(newest->filename().string()) : std::nullopt;
  return step ? step->step : 0;
}

/// 3 when some checkpoints had to be left out, 1 when all had to.
int exit_code_of(const ValidationTable& table) {
  if (table.skipped.empty()) {
    return 0;
  }
  constexpr int kSomeSkipped = 3;
  return table.rows.empty() ? 1 : kSomeSkipped;
}

}  // namespace

int run_fit(const CommandLine& line, Registries& registries) {
  return run_phases(line, registries, &RunConfig::fit, "fit", [&](RunConfig& run) {
    if (line.max_restarts == 0) {
      return fit_once(line, run);
    }
    run.init.autorestart.max_num_restarts = line.max_restarts;
    return supervise(
        line.max_restarts, [&] { return fit_once(line, run); }, [&] { return newest_update(run); });
  });
}

int run_validate(const CommandLine& line, Registries& registries) {
  return run_phases(line, registries, &RunConfig::validate, "validate", [&](RunConfig& run) {
    Trainer trainer(without_training(run.init));
    const StopOnSignal signals(trainer);
    const Metrics metrics = trainer.validate(run.validate->loader, run.validate->from);
    std::cerr << headline(metrics) << std::endl;
    if (line.json) {
      ValidationTable table;
      table.rows.push_back(
          {trainer.state().last_checkpoint, trainer.state().global_step(), metrics});
      std::cout << table.to_json_line() << std::endl;
    }
    return signals.exit_code();
  });
}

int run_validate_all(const CommandLine& line, Registries& registries) {
  return run_phases(
      line, registries, &RunConfig::validate_all, "validate_all", [&](RunConfig& run) {
        Trainer trainer(without_training(run.init));
        const StopOnSignal signals(trainer);
        const RunConfig::ValidateAll& all = *run.validate_all;
        const ValidateAllOptions options{line.since, line.multiple_of, line.force, line.watch};
        const ValidationTable table =
            all.checkpoints ? trainer.validate_all(all.loaders, *all.checkpoints, options)
                            : trainer.validate_all_indexed(all.loaders, options);
        (line.json ? std::cerr : std::cout) << table;
        if (line.json) {
          std::cout << table.to_json_line() << std::endl;
        }
        return signals.exit_code() != 0 ? signals.exit_code() : exit_code_of(table);
      });
}

int run_predict(const CommandLine& line, Registries& registries) {
  return run_phases(line, registries, &RunConfig::predict, "predict", [&](RunConfig& run) {
    Trainer trainer(without_training(run.init));
    const StopOnSignal signals(trainer);
    const Outputs outputs = trainer.predict(run.predict->loader, run.predict->from);
    const std::string file = (trainer.state().artifact_dir / "predictions.pt").string();
    std::string shapes;
    for (const Outputs::Item& item : outputs.items()) {
      const std::string shape = fmt::format("[{}]", fmt::join(item.second.sizes(), ", "));
      std::cerr << fmt::format("{} {}\n", item.first, shape);
      shapes += fmt::format("{}{}: {}", shapes.empty() ? "" : ", ", json_string(item.first), shape);
    }
    std::cerr << "written to " << file << std::endl;
    if (line.json) {
      std::cout << fmt::format("{{\"file\": {}, \"outputs\": {{{}}}}}", json_string(file), shapes)
                << std::endl;
    }
    return signals.exit_code();
  });
}

}  // namespace rondo
