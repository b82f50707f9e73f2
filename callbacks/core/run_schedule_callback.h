#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "callbacks/callback.h"
#include "callbacks/core/loop.h"
#include "callbacks/core/run_plan.h"

namespace rondo {

/// Samples that training takes of a pass, if known.
std::optional<int64_t> samples_of_pass(const DataLoader& loader, const LoopOptions& loop);

/// Updates in a pass, if its length is known; a short last group counts as one.
/// \param from      the position where the pass begins
/// \param run_seed  as for `DataLoader::size`
std::optional<int64_t> updates_of_pass(const DataLoader& loader,
                                       const LoopOptions& loop,
                                       const LoaderPosition& from = {},
                                       uint64_t run_seed = 0);

/// Owns the plan of the running fit: when it validates and when it ends. Fills slot `run_schedule`.
/// To change these times, derive from RunPlan, and from this class to return it in `make_plan`.
class RunScheduleCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "run_schedule";

  /// Makes the plan. The fit calls it after loading its checkpoint, before `on_fit_start`.
  void build(Trainer& trainer, const DataLoader& train, const LoopOptions& options);

  /// The plan of the running fit. \throws UsageError  outside of a fit
  const RunPlan& plan() const;

  /// Forgets the plan when the fit is left, before `on_fit_exception`.
  void on_enter_fit(
      Trainer& trainer, Cleanup& cleanup, const DataLoader&, const Loaders&, Loop&) override;

 protected:
  /// The arguments are those of RunPlan's constructor.
  virtual std::unique_ptr<RunPlan> make_plan(const LoopOptions& options,
                                             const Timestamp& start,
                                             std::optional<int64_t> updates_per_epoch) const;

 private:
  std::unique_ptr<RunPlan> plan_;
};

}  // namespace rondo
