#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/registry.h"
#include "optim/schedules/target_keys.h"

namespace rondo {

namespace detail {

/// \throws UsageError  naming option, rule and value, when it is not finite or fails the check
void check_number(const std::string& option, const OptionCheck& check, double number);

/// \throws UsageError  with `fault` after the scheduler's name, unless it is ""
void refuse(const std::string& scheduler, const std::string& fault);

inline void count_field(Duration& duration,
                        DurationCounter& counter,
                        const std::string& option,
                        int64_t least) {
  duration.count(counter, option, least);
}

template <class Several>  // an optional or a vector
void count_field(Several& durations,
                 DurationCounter& counter,
                 const std::string& option,
                 int64_t least) {
  if constexpr (std::is_same_v<Several, std::optional<Duration>>) {
    if (durations) {
      durations->count(counter, option, least);
    }
  } else {
    for (Duration& duration : durations) {
      duration.count(counter, option, least);
    }
  }
}

}  // namespace detail

/// What there is to know of a schedule's options, which have a field `target`: keys, ranges, docs,
/// and which of them are durations. Config keys, the checks of options that code sets, and counting
/// follow from it.
template <class Options>
class ScheduleTable {
 public:
  ScheduleTable(std::string name, std::string doc) : name_(std::move(name)), doc_(std::move(doc)) {}

  /// A finite number, such as the first value.
  ScheduleTable& number(std::string key,
                        double Options::*field,
                        std::string doc,
                        OptionCheck check = {}) {
    keys_.key(key, field, check, std::move(doc));
    checks_.push_back([option = path(key), field, check](const Options& options) {
      detail::check_number(option, check, options.*field);
    });
    return *this;
  }

  ScheduleTable& numbers(std::string key, std::vector<double> Options::*field, std::string doc) {
    keys_.key(key, field, std::move(doc));
    checks_.push_back([option = path(key), field](const Options& options) {
      for (const double number : options.*field) {
        detail::check_number(option, {}, number);
      }
    });
    return *this;
  }

  /// A Duration, an optional one, or a list of them.
  /// \param least  0, or 1 where none makes no sense
  template <class Field>
  ScheduleTable& duration(std::string key, Field Options::*field, int64_t least, std::string doc) {
    counts_.push_back(
        [option = path(key), field, least](Options& options, DurationCounter& counter) {
          detail::count_field(options.*field, counter, option, least);
        });
    return this->key(
        std::move(key), field, least == 0 ? at_least(0) : greater_than(0), std::move(doc));
  }

  /// One of these words.
  ScheduleTable& word(std::string key,
                      std::string Options::*field,
                      std::vector<std::string> words,
                      std::string doc) {
    const OptionCheck check = one_of(std::move(words));
    rule([key, field, check](const Options& options) {
      return check.accepts(ConfigValue(options.*field))
                 ? ""
                 : key + ": expected a string " + check.text + ", got \"" + options.*field + '"';
    });
    return this->key(std::move(key), field, check, std::move(doc));
  }

  /// Any other key.
  template <class Field>
  ScheduleTable& key(std::string key, Field Options::*field, OptionCheck check, std::string doc) {
    keys_.key(std::move(key), field, std::move(check), std::move(doc));
    return *this;
  }

  /// The key that was added last must be given.
  ScheduleTable& required() {
    keys_.required();
    return *this;
  }

  /// What options have to keep together; `fault` gives what is wrong, or "".
  ScheduleTable& rule(std::function<std::string(const Options&)> fault) {
    checks_.push_back([name = name_, fault = std::move(fault)](const Options& options) {
      detail::refuse(name, fault(options));
    });
    return *this;
  }

  /// \throws UsageError  for an option that is out of its range
  void check(const Options& options) const {
    for (const auto& check : checks_) {
      check(options);
    }
  }

  /// Counts every duration of the options.
  void count(Options& options, DurationCounter& counter) const {
    for (const auto& count : counts_) {
      count(options, counter);
    }
  }

  /// Registers the scheduler `T` of these options.
  template <class T>
  void add_to(Registry<Scheduler>& registry) const {
    KeyTable<Options>& keys = registry.add<T>(name_, doc_);
    keys.add_all(keys_);
    add_target_keys(keys);
  }

 private:
  std::string path(const std::string& key) const { return name_ + "." + key; }

  std::string name_;
  std::string doc_;
  KeyTable<Options> keys_;
  std::vector<std::function<void(const Options&)>> checks_;
  std::vector<std::function<void(Options&, DurationCounter&)>> counts_;
};

}  // namespace rondo
