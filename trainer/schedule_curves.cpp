#include "trainer/schedule_curves.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "callbacks/core/run_plan.h"
#include "callbacks/core/run_schedule_callback.h"
#include "core/error.h"
#include "trainer/run_aside.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// How far a curve goes, in what the schedule counts.
double length_of(const Scheduler& scheduler, const RunLength& run) {
  if (run.total && run.total->unit() == scheduler.unit()) {
    return run.total->value();
  }
  if (scheduler.length() != kEndless) {
    return scheduler.length();
  }
  throw UsageError(
      fmt::format("{} has no end, and the length of the run in its unit is unknown: set "
                  "loop.max_steps, or loop.max_duration in that unit",
                  class_name(typeid(scheduler))));
}

std::vector<double> values_of(const Scheduler& scheduler,
                              double scale,
                              double length,
                              int64_t points) {
  const int64_t steps =
      std::max<int64_t>(std::min<int64_t>(points - 1, static_cast<int64_t>(length)), 1);
  std::vector<double> values;
  for (int64_t i = 0; i <= steps; ++i) {
    const double done = length * static_cast<double>(i) / static_cast<double>(steps);
    values.push_back(scheduler.at(done) * scale);
  }
  return values;
}

/// One for each group in which the scheduler writes other numbers.
std::vector<std::pair<std::string, double>> names_and_scales(const Scheduler& scheduler,
                                                             const Optimizer& optimizer) {
  const SchedulerTarget& target = scheduler.target();
  if (!target.relative) {
    const std::string tags = fmt::format("{}", fmt::join(target.param_group_tags, ", "));
    return {{target.param_group_key + (tags.empty() ? "" : " of " + tags), 1.0}};
  }
  std::vector<std::pair<std::string, double>> found;
  for (size_t i = 0; i < optimizer.groups().size(); ++i) {
    const ParamGroup& group = optimizer.groups()[i];
    if (scheduler.drives(group)) {
      const std::string name = group.tag.empty() ? fmt::format("group {}", i) : group.tag;
      found.emplace_back(target.param_group_key + " of " + name, scheduler.scale_of(i));
    }
  }
  return found;
}

}  // namespace

std::vector<ScheduleCurve> schedule_curves(const RunConfig& run, int64_t points) {
  if (!run.fit || run.init.schedulers.empty()) {
    throw UsageError("there is no schedule to draw: the run has no [trainer.fit] or no schedulers");
  }
  const ScratchDirectory scratch;
  TrainerOptions options = options_aside(run.init, scratch.path());
  options.seed = options.seed.value_or(0);  // nothing depends on it
  Trainer trainer(std::move(options), TextLog(LogLevel::Warning));
  const LoopOptions& loop = run.init.loop;
  const RunPlan plan(loop, Timestamp(), updates_of_pass(run.fit->train, loop));
  std::vector<ScheduleCurve> curves;
  for (const auto& scheduler : trainer.state().schedulers) {
    scheduler->resolve(plan.length(), loop.scale_schedule_ratio);
    const double length = length_of(*scheduler, plan.length());
    const FollowedMetric* const followed = scheduler->followed();
    for (const auto& [number, scale] :
         names_and_scales(*scheduler, trainer.state().optimizer_of(*scheduler))) {
      curves.push_back({number,
                        class_name(typeid(*scheduler)),
                        scheduler->unit(),
                        length,
                        values_of(*scheduler, scale, length, points),
                        followed != nullptr ? followed->name : ""});
    }
  }
  return curves;
}

}  // namespace rondo
