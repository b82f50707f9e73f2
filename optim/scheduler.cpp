#include "optim/scheduler.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/glob.h"
#include "optim/optimizer_table.h"

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

/// The number of that name, which the group has.
const at::Tensor& number_of(const ParamGroup& group, const std::string& name) {
  const NamedTensors& numbers = group.numbers();
  return std::find_if(
             numbers.begin(), numbers.end(), [&](const NamedTensor& n) { return n.first == name; })
      ->second;
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

/// What a group multiplies schedules of its learning rate by.
double lr_scale(const ParamGroup& group) {
  for (const NamedTensor& number : group.numbers()) {
    if (number.first == "adjust_learning_rate") {
      return *number.second.data_ptr<double>();
    }
  }
  return 1.0;
}

}  // namespace

bool Scheduler::drives(const ParamGroup& group) const {
  const std::vector<std::string>& tags = target_.param_group_tags;
  const bool is_spared = group.tag == kNoDecayTag && target_.param_group_key == "weight_decay";
  return (tags.empty() && !is_spared) ||
         std::find(tags.begin(), tags.end(), group.tag) != tags.end();
}

void Scheduler::attach(const Optimizer& optimizer) {
  initial_.clear();
  if (!target_.relative) {
    return;
  }
  for (const ParamGroup& group : optimizer.groups()) {
    initial_.push_back(*number_of(group, target_.param_group_key).data_ptr<double>());
  }
}

void Scheduler::resolve(const RunLength& run, double ratio) {
  DurationCounter counter(run, ratio);
  count(counter);
  unit_ = counter.unit();
}

void Scheduler::count(DurationCounter& counter) {
  count_durations(counter);
  target_.warmup.count(counter, class_name(typeid(*this)) + ".warmup", 0, target_.scale_warmup);
  if (target_.warmup > 0.0 && target_.warmup >= length()) {
    throw UsageError(fmt::format(
        "{}.warmup: expected less than the length of the schedule, which ends at {}, got {}",
        class_name(typeid(*this)),
        length(),
        target_.warmup.time().to_string()));
  }
}

double Scheduler::at(double done) const {
  const double warmup = target_.warmup;
  if (warmup <= 0.0) {
    return value(done);
  }
  const double length = this->length();
  const bool has_end = length != kEndless;
  if (done < warmup) {
    return value(has_end ? 0.0 : warmup) * (done / warmup);
  }
  return value(has_end ? (done - warmup) / (length - warmup) * length : done);
}

void Scheduler::write(const Timestamp& now, Optimizer& optimizer) const {
  const double number = at(now.amount(unit_));
  std::vector<ParamGroup>& groups = optimizer.groups();
  for (size_t i = 0; i < groups.size(); ++i) {
    if (drives(groups[i])) {
      // What a relative one multiplies has the group's factor already.
      const bool is_scaled = target_.param_group_key == "lr" && !target_.relative;
      *groups[i][target_.param_group_key].data_ptr<double>() =
          number * (is_scaled ? lr_scale(groups[i]) : scale_of(i));
    }
  }
}

void check_schedulers(const std::vector<std::unique_ptr<Scheduler>>& schedulers,
                      const Optimizer& optimizer) {
  const auto drives_it = [&](const Scheduler& scheduler) {
    const std::string& name = scheduler.target().optimizer;
    return name.empty() || name == optimizer.name();
  };
  for (size_t i = 0; i < schedulers.size(); ++i) {
    if (!drives_it(*schedulers[i])) {
      continue;
    }
    check_exists(schedulers[i]->target(), title(schedulers, i), optimizer);
    for (size_t j = 0; j < i; ++j) {
      const std::string why = conflict(schedulers[j]->target(), schedulers[i]->target());
      if (!why.empty() && drives_it(*schedulers[j])) {
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
