#pragma once

#include <cstdint>
#include <optional>

#include "callbacks/asks_for_instruments.h"
#include "callbacks/callback.h"
#include "callbacks/not_in_dry_runs.h"

namespace rondo {

/// Times the operators of recorded steps while a fit runs, and writes at its end
/// `<artifact_dir>/profile/<step>.json`, a trace that Perfetto and chrome://tracing open, and
/// `<step>.txt`, tables by operator, module and line of code. Steps that run as written have none.
/// Source: OpProfiler of Cerebras' ModelZoo trainer, Composer's Profiler.
class OpProfiler final : public Callback, public AsksForInstruments, public NotInDryRuns {
 public:
  struct Options {
    int64_t active = 20;  ///< replays of each step that are timed, >= 1
    int64_t wait = 5;     ///< replays that pass before, >= 0; in the first ones kernels stand trial
    std::optional<int64_t> warmup = {};  ///< replays after these, >= 0; absent: twice `active`
  };

  /// \throws UsageError  for options out of range
  explicit OpProfiler(const Options& options);

  Instruments instruments() const override;

  void on_fit_end(Trainer& trainer, Loop&) override;

 private:
  Options options_;
};

}  // namespace rondo
