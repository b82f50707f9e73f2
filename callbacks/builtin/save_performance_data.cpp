#include "callbacks/builtin/save_performance_data.h"

#include <map>
#include <string>

#include "core/json_text.h"
#include "core/process_memory.h"
#include "core/registry.h"
#include "core/report_file.h"
#include "trainer/trainer.h"

namespace rondo {

void SavePerformanceData::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) {
  begin_ = trainer.state().timestamp;
  since_ = std::chrono::steady_clock::now();
}

void SavePerformanceData::on_fit_end(Trainer& trainer, Loop&) {
  const State& state = trainer.state();
  const Timestamp& end = state.timestamp;
  const double train_seconds = end.total_seconds - begin_.total_seconds;
  std::map<std::string, double> values = {
      {"train_seconds", train_seconds},
      {"total_seconds",
       std::chrono::duration<double>(std::chrono::steady_clock::now() - since_).count()},
      {"saves", static_cast<double>(state.saves.written)},
      {"save_pause_seconds", state.saves.pause_s}};
  const auto add = [&](const std::string& name, int64_t count) {
    values["total_" + name] = static_cast<double>(count);
    if (train_seconds > 0.0) {
      values[name + "_per_sec"] = static_cast<double>(count) / train_seconds;
    }
  };
  add("updates", end.update - begin_.update);
  add("batches", end.batch - begin_.batch);
  add("samples", end.sample - begin_.sample);
  add("tokens", end.token - begin_.token);
  if (const auto peak = peak_resident_bytes()) {
    values["peak_memory_bytes"] = static_cast<double>(*peak);
  }
  std::string text;
  for (const auto& [name, value] : values) {
    text += (text.empty() ? "{\n  " : ",\n  ") + json_string(name) + ": " + json_number(value);
  }
  write_report(trainer.log(), state.artifact_dir / "performance.json", text + "\n}\n");
}

void register_save_performance_data(Registry<Callback>& registry) {
  registry.add<SavePerformanceData>("SavePerformanceData",
                                    "Writes how fast a fit was into performance.json.");
}

}  // namespace rondo
