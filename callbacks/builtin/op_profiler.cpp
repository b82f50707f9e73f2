#include "callbacks/builtin/op_profiler.h"

#include "core/registry.h"
#include "core/report_file.h"
#include "core/require.h"
#include "tracing/timeline.h"
#include "trainer/trainer.h"

namespace rondo {

OpProfiler::OpProfiler(const Options& options) : options_(options) {
  detail::require(options.active >= 1, "OpProfiler.active", ">= 1", options.active);
  detail::require(options.wait >= 0, "OpProfiler.wait", ">= 0", options.wait);
  const int64_t warmup = options.warmup.value_or(0);
  detail::require(warmup >= 0, "OpProfiler.warmup", ">= 0", warmup);
}

Instruments OpProfiler::instruments() const {
  Instruments wanted;
  wanted.timing = TimingSchedule::of(options_.active);
  wanted.timing.wait = options_.wait;
  wanted.timing.warmup = options_.warmup.value_or(wanted.timing.warmup);
  return wanted;
}

void OpProfiler::on_fit_end(Trainer& trainer, Loop&) {
  const std::filesystem::path folder = trainer.state().artifact_dir / "profile";
  bool has_any = false;
  for (const StepReport& step : trainer.state().backend->reports()) {
    const std::string table = timeline_table(step.timeline);
    if (!table.empty()) {
      write_report(
          trainer.log(), folder / (step.name + ".json"), chrome_trace(step.name, step.timeline));
      write_report(trainer.log(), folder / (step.name + ".txt"), table);
      has_any = true;
    }
  }
  if (!has_any) {
    trainer.log().warning(
        "OpProfiler has nothing to write: it times replays of recorded steps, and there were none "
        "or too few");
  }
}

void register_op_profiler(Registry<Callback>& registry) {
  using Options = OpProfiler::Options;
  registry.add<OpProfiler>("OpProfiler", "Times the operators of recorded steps during a fit.")
      .key("active", &Options::active, at_least(1), "replays of each step to time")
      .key("wait", &Options::wait, at_least(0), "replays that pass before")
      .key("warmup", &Options::warmup, at_least(0), "replays after these; twice active by default");
}

}  // namespace rondo
