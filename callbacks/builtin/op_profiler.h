#pragma once

#include <cstdint>

#include "callbacks/asks_for_timeline.h"
#include "callbacks/callback.h"
#include "callbacks/not_in_dry_runs.h"

namespace rondo {

/// Times the operators of recorded steps while a fit runs, and writes at its end
/// `<artifact_dir>/profile/<step>.json`, a trace that Perfetto and chrome://tracing open, and
/// `<step>.txt`, tables by operator, module and line of code. Steps that run as written have none.
/// Source: OpProfiler of Cerebras' ModelZoo trainer, Composer's Profiler.
class OpProfiler final : public Callback, public AsksForTimeline, public NotInDryRuns {
 public:
  struct Options {
    int64_t active = 20;  ///< replays of each step that are timed, >= 1; a few before warm up
  };

  /// \throws UsageError  for options out of range
  explicit OpProfiler(const Options& options);

  int64_t timed_replays() const override { return options_.active; }

  void on_fit_end(Trainer& trainer, Loop&) override;

 private:
  Options options_;
};

}  // namespace rondo
