#include "optim/optimizer_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/option_types.h"

namespace rondo {

namespace {

bool is_in(const OptionCheck& check, double value) {
  return std::isfinite(value) && (!check.accepts || check.accepts(ConfigValue(value)));
}

void check(const std::string& where,
           const std::vector<NumberRange>& ranges,
           const Optimizer::Numbers& numbers) {
  for (const auto& number : numbers) {
    const auto range = std::find_if(
        ranges.begin(), ranges.end(), [&](const NumberRange& r) { return r.name == number.first; });
    if (range != ranges.end() && !is_in(range->check, number.second)) {
      throw UsageError(fmt::format("{}.{}: expected a number {}, got {}",
                                   where,
                                   number.first,
                                   range->check.text,
                                   number.second));
    }
  }
}

}  // namespace

std::vector<std::string> names_of(const std::vector<NumberRange>& ranges) {
  std::vector<std::string> names;
  for (const NumberRange& range : ranges) {
    names.push_back(range.name);
  }
  return names;
}

void check_numbers(const std::string& optimizer,
                   const std::vector<NumberRange>& ranges,
                   const Optimizer::Numbers& numbers,
                   const std::vector<ParamGroupOptions>& groups) {
  check(optimizer, ranges, numbers);
  for (size_t i = 0; i < groups.size(); ++i) {
    check(fmt::format("{}.params[{}]", optimizer, i), ranges, groups[i].numbers);
  }
}

bool sets_number(double value,
                 const std::string& name,
                 const std::vector<ParamGroupOptions>& groups) {
  const auto is_it = [&](const auto& number) { return number.first == name; };
  return value != 0 || std::any_of(groups.begin(), groups.end(), [&](const auto& group) {
           return std::any_of(group.numbers.begin(), group.numbers.end(), is_it);
         });
}

std::vector<ParamGroupOptions> with_no_decay_group(std::vector<ParamGroupOptions> groups) {
  groups.push_back({{"*"}, kNoDecayTag, {{"weight_decay", 0.0}, {"max_dims", 1.0}}});
  return groups;
}

std::optional<NumberPairOption::Pair> NumberPairOption::read(const ConfigValue& value,
                                                             FaultSink& faults) const {
  const auto* array = value.get_if<ConfigArray>();
  if (array == nullptr || array->size() != 2) {
    return detail::mismatch(value, name(), faults);
  }
  const auto first = detail::read_number(array->front(), faults);
  const auto second = detail::read_number(array->back(), faults);
  if (!first || !second) {
    return std::nullopt;
  }
  const bool is_valid = is_in(check, *first) && is_in(check, *second);
  return is_valid ? std::optional<Pair>({*first, *second})
                  : detail::mismatch(value, name(), faults);
}

ConfigValue NumberPairOption::write(const Pair& pair) const {
  return ConfigValue(ConfigArray{ConfigValue(pair[0]), ConfigValue(pair[1])});
}

}  // namespace rondo
