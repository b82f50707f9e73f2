#include <fmt/format.h>

#include <cstdio>
#include <iostream>

#include "cli/commands.h"
#include "cli/load_run.h"
#include "cli/signals.h"
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

bool prints_only(const CommandLine& line, const RunConfig& run) {
  if (line.dry_run) {
    std::cout << run.init.config_text;
  }
  return line.dry_run;
}

}  // namespace

int run_fit(const CommandLine& line, Registries& registries) {
  const RunConfig run = load_run(line, registries);
  if (!run.fit) {
    missing_section(line, "fit");
  }
  if (prints_only(line, run)) {
    return 0;
  }
  Trainer trainer(run.init);
  const StopOnSignal signals(trainer);
  const FitResult result = trainer.fit(run.fit->train, run.fit->val, run.fit->from);
  print_summary(result);
  if (line.json) {
    std::cout << json_of(result) << std::endl;
  }
  return signals.exit_code();
}

int run_validate(const CommandLine& line, Registries& registries) {
  RunConfig run = load_run(line, registries);
  if (!run.validate) {
    missing_section(line, "validate");
  }
  if (prints_only(line, run)) {
    return 0;
  }
  run.init.optimizer = {};
  run.init.schedulers.clear();
  Trainer trainer(run.init);
  const StopOnSignal signals(trainer);
  const Metrics metrics = trainer.validate(run.validate->loader, run.validate->from);
  std::cerr << headline(metrics) << std::endl;
  if (line.json) {
    ValidationTable table{
        {{trainer.state().last_checkpoint, trainer.state().global_step(), metrics}}};
    std::cout << table.to_json_line() << std::endl;
  }
  return signals.exit_code();
}

int run_validate_all(const CommandLine& line, Registries& registries) {
  RunConfig run = load_run(line, registries);
  if (!run.validate_all) {
    missing_section(line, "validate_all");
  }
  if (prints_only(line, run)) {
    return 0;
  }
  run.init.optimizer = {};
  run.init.schedulers.clear();
  Trainer trainer(run.init);
  const StopOnSignal signals(trainer);
  const RunConfig::ValidateAll& all = *run.validate_all;
  const ValidateAllOptions options{line.since, line.multiple_of, line.force, line.watch};
  const ValidationTable table = all.checkpoints
                                    ? trainer.validate_all(all.loaders, *all.checkpoints, options)
                                    : trainer.validate_all_indexed(all.loaders, options);
  (line.json ? std::cerr : std::cout) << table;
  if (line.json) {
    std::cout << table.to_json_line() << std::endl;
  }
  if (signals.exit_code() != 0 || table.skipped.empty()) {
    return signals.exit_code();
  }
  constexpr int kSomeSkipped = 3;
  return table.rows.empty() ? 1 : kSomeSkipped;
}

}  // namespace rondo
