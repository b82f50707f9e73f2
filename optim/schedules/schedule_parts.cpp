#include "optim/internal/schedule_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"

namespace rondo::detail {

namespace {

const SchedulerTarget kDefaultTarget;

void check_part(const Scheduler& part, const SchedulerTarget& whole, const std::string& name) {
  const SchedulerTarget& own = part.target();
  if (!own.param_group_tags.empty()) {
    throw UsageError(fmt::format("{}.param_group_tags: expected none, got [{}]; set them outside",
                                 name,
                                 fmt::join(own.param_group_tags, ", ")));
  }
  if (own.param_group_key != kDefaultTarget.param_group_key &&
      own.param_group_key != whole.param_group_key) {
    throw UsageError(
        fmt::format("{}.param_group_key: expected \"{}\" as the schedule around it has, got \"{}\"",
                    name,
                    whole.param_group_key,
                    own.param_group_key));
  }
  if (!own.optimizer.empty()) {
    throw UsageError(name + ".optimizer: expected none; set it outside");
  }
  if (own.relative) {
    throw UsageError(name + ".relative: expected false; set it outside");
  }
  if (part.followed() != nullptr) {
    throw UsageError(name + " follows a metric, and cannot be a part of another schedule");
  }
}

}  // namespace

std::vector<std::unique_ptr<Scheduler>> make_parts(const std::string& whole,
                                                   const std::vector<Factory<Scheduler>>& factories,
                                                   const SchedulerTarget& target) {
  if (factories.empty()) {
    throw UsageError(whole + ".schedulers: expected at least one, got none");
  }
  std::vector<std::unique_ptr<Scheduler>> parts;
  for (const Factory<Scheduler>& factory : factories) {
    parts.push_back(factory.make());
    check_part(*parts.back(), target, fmt::format("{}.schedulers[{}]", whole, parts.size() - 1));
  }
  return parts;
}

}  // namespace rondo::detail
