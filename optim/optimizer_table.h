#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/registry.h"
#include "optim/optimizer.h"
#include "optim/param_group_option.h"

namespace rondo {

/// The name of a number that a scheduler may move, with its range.
struct NumberRange {
  std::string name;
  OptionCheck check;
};

std::vector<std::string> names_of(const std::vector<NumberRange>& ranges);

/// Checks numbers and what groups set in their place.
/// \param optimizer  its name, for the message
/// \throws UsageError  naming option, range and value
void check_numbers(const std::string& optimizer,
                   const std::vector<NumberRange>& ranges,
                   const Optimizer::Numbers& numbers,
                   const std::vector<ParamGroupOptions>& groups);

/// Whether a number is not zero, or a group sets it.
bool sets_number(double value,
                 const std::string& name,
                 const std::vector<ParamGroupOptions>& groups);

/// The tag of the group whose weight_decay is 0 when `decay_biases_and_norms` is false. Schedulers
/// of weight_decay leave a group with this tag alone unless they name it.
inline constexpr const char* kNoDecayTag = "no_decay";

/// The groups, and one for the biases, and the scales of norms, that none of them picks: parameters
/// of fewer than two dimensions, without weight decay.
std::vector<ParamGroupOptions> with_no_decay_group(std::vector<ParamGroupOptions> groups);

namespace detail {

/// True when `Options` has a field `decay_biases_and_norms`.
template <class Options, class = void>
struct SparesBiases : std::false_type {};

template <class Options>
struct SparesBiases<Options, std::void_t<decltype(std::declval<Options>().decay_biases_and_norms)>>
    : std::true_type {};

}  // namespace detail

/// The groups that the options of an optimizer ask for.
template <class Options>
std::vector<ParamGroupOptions> groups_in(const Options& options) {
  if constexpr (detail::SparesBiases<Options>::value) {
    if (!options.decay_biases_and_norms) {
      return with_no_decay_group(options.params);
    }
  }
  return options.params;
}

/// How a config writes two numbers: `betas = [0.9, 0.999]`. For `KeyTable::key_of`.
struct NumberPairOption {
  using Pair = std::array<double, 2>;

  OptionCheck check;  ///< of each

  std::string name() const { return "a list of two numbers " + check.text; }

  std::optional<Pair> read(const ConfigValue& value, FaultSink& faults) const;
  ConfigValue write(const Pair& pair) const;
};

/// What there is to know of an optimizer's options: keys, ranges and docs. Config keys, the numbers
/// of groups, and the checks of options that code sets follow from it. `Options` has a list
/// `params` of groups, and `decay_biases_and_norms` where there is a weight decay.
template <class Options>
class OptimizerTable {
 public:
  OptimizerTable(std::string name, std::string doc)
      : name_(std::move(name)), doc_(std::move(doc)) {}

  /// A number that schedulers may move, and groups may set.
  OptimizerTable& number(std::string name,
                         double Options::*field,
                         OptionCheck check,
                         std::string doc) {
    keys_.key(name, field, check, std::move(doc));
    numbers_.push_back([field](const Options& options) { return options.*field; });
    ranges_.push_back({std::move(name), std::move(check)});
    return *this;
  }

  /// Two of them under one key.
  OptimizerTable& numbers(std::string name,
                          std::array<std::string, 2> names,
                          std::array<double, 2> Options::*field,
                          const OptionCheck& check,
                          std::string doc) {
    keys_.key_of(std::move(name), field, NumberPairOption{check}, std::move(doc));
    for (size_t i = 0; i < 2; ++i) {
      numbers_.push_back([field, i](const Options& options) { return (options.*field)[i]; });
      ranges_.push_back({std::move(names[i]), check});
    }
    return *this;
  }

  /// Any other key, which stays as it is in a run.
  template <class Field>
  OptimizerTable& key(std::string name, Field Options::*field, std::string doc) {
    keys_.key(std::move(name), field, std::move(doc));
    return *this;
  }

  template <class Field>
  OptimizerTable& key(std::string name, Field Options::*field, OptionCheck check, std::string doc) {
    keys_.key(std::move(name), field, std::move(check), std::move(doc));
    return *this;
  }

  /// The numbers of a group, in the order of the table.
  /// \throws UsageError  for one that is out of its range, also within `options.params`
  Optimizer::Numbers checked_numbers(const Options& options) const {
    Optimizer::Numbers numbers;
    for (size_t i = 0; i < ranges_.size(); ++i) {
      numbers.emplace_back(ranges_[i].name, numbers_[i](options));
    }
    check_numbers(name_, ranges_, numbers, options.params);
    return numbers;
  }

  /// Registers the optimizer `T` of these options.
  template <class T>
  void add_to(Registry<Optimizer>& registry) const {
    KeyTable<Options>& keys = registry.add<T>(name_, doc_);
    keys.add_all(keys_);
    keys.key_of("params",
                &Options::params,
                ParamGroupListOption(names_of(ranges_)),
                "parameters with their own numbers");
    if constexpr (detail::SparesBiases<Options>::value) {
      keys.key("decay_biases_and_norms",
               &Options::decay_biases_and_norms,
               "false: no weight decay for parameters of fewer than two dimensions");
    }
  }

 private:
  std::string name_;
  std::string doc_;
  KeyTable<Options> keys_;
  std::vector<NumberRange> ranges_;
  std::vector<std::function<double(const Options&)>> numbers_;
};

}  // namespace rondo
