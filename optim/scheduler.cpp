#include "optim/scheduler.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/glob.h"

namespace rondo {

namespace {

std::string title(const std::vector<std::unique_ptr<Scheduler>>& schedulers, size_t i) {
  const Scheduler& scheduler = *schedulers[i];
  return fmt::format("schedulers[{}] ({})", i, class_name(typeid(scheduler)));
}

/// "" when the two never drive the same number of the same group, else why they do.
std::string conflict(const SchedulerTarget& a, const SchedulerTarget& b) {
  if (a.param_group_key != b.param_group_key) {
    return "";
  }
  if (a.param_group_tags.empty() || b.param_group_tags.empty()) {
    return "one without param_group_tags drives every group";
  }
  for (const std::string& tag : a.param_group_tags) {
    if (std::find(b.param_group_tags.begin(), b.param_group_tags.end(), tag) !=
        b.param_group_tags.end()) {
      return "both have the tag \"" + tag + "\"";
    }
  }
  return "";
}

void check_exists(const SchedulerTarget& target,
                  const std::string& who,
                  const Optimizer& optimizer) {
  std::vector<std::string> tags;
  for (const ParamGroup& group : optimizer.groups()) {
    tags.push_back(group.tag);
    std::vector<std::string> numbers;
    for (const NamedTensor& number : group.numbers()) {
      numbers.push_back(number.first);
    }
    if (std::find(numbers.begin(), numbers.end(), target.param_group_key) == numbers.end()) {
      throw UsageError(fmt::format("{}: the optimizer has no number \"{}\"{}",
                                   who,
                                   target.param_group_key,
                                   suggestion(target.param_group_key, numbers)));
    }
  }
  for (const std::string& tag : target.param_group_tags) {
    if (std::find(tags.begin(), tags.end(), tag) == tags.end()) {
      throw UsageError(fmt::format(
          "{}: no parameter group has the tag \"{}\"{}", who, tag, suggestion(tag, tags)));
    }
  }
}

}  // namespace

bool Scheduler::drives(const ParamGroup& group) const {
  const std::vector<std::string>& tags = target_.param_group_tags;
  return tags.empty() || std::find(tags.begin(), tags.end(), group.tag) != tags.end();
}

void Scheduler::resolve(const RunLength& run) {
  DurationCounter counter(run);
  count_durations(counter);
  unit_ = counter.unit();
}

void Scheduler::write(const Timestamp& now, Optimizer& optimizer) const {
  const double number = value(now.amount(unit_));
  for (ParamGroup& group : optimizer.groups()) {
    if (drives(group)) {
      *group[target_.param_group_key].data_ptr<double>() = number;
    }
  }
}

void check_schedulers(const std::vector<std::unique_ptr<Scheduler>>& schedulers,
                      const Optimizer& optimizer) {
  for (size_t i = 0; i < schedulers.size(); ++i) {
    check_exists(schedulers[i]->target(), title(schedulers, i), optimizer);
    for (size_t j = 0; j < i; ++j) {
      const std::string why = conflict(schedulers[j]->target(), schedulers[i]->target());
      if (!why.empty()) {
        throw UsageError(fmt::format("{} and {} both drive \"{}\": {}",
                                     title(schedulers, j),
                                     title(schedulers, i),
                                     schedulers[i]->target().param_group_key,
                                     why));
      }
    }
  }
}

}  // namespace rondo
