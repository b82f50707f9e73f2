#include "core/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/glob.h"
#include "core/home_path.h"

namespace rondo {

namespace {

/// The number of an integer or a float.
std::optional<double> number_in(const ConfigValue& value) {
  if (const int64_t* integer = value.get_if<int64_t>()) {
    return static_cast<double>(*integer);
  }
  if (const double* number = value.get_if<double>()) {
    return *number;
  }
  return std::nullopt;
}

/// A check of numbers, a list of which is accepted when each of its elements is. What is not a
/// number (a Time string, a wrong type) is left to the type.
OptionCheck numeric(std::string text, std::function<bool(double)> holds) {
  const auto accepts = [holds = std::move(holds)](const ConfigValue& value) {
    const auto number = number_in(value);
    return !number || holds(*number);
  };
  return {std::move(text), [accepts](const ConfigValue& value) {
            const auto* array = value.get_if<ConfigArray>();
            return array == nullptr ? accepts(value)
                                    : std::all_of(array->begin(), array->end(), accepts);
          }};
}

std::vector<std::string> names_of(const std::vector<OptionKey>& keys) {
  std::vector<std::string> names;
  for (const OptionKey& key : keys) {
    names.push_back(key.name);
  }
  return names;
}

const OptionKey* find_key(const std::vector<OptionKey>& keys, const std::string& name) {
  for (const OptionKey& key : keys) {
    if (key.name == name) {
      return &key;
    }
  }
  return nullptr;
}

}  // namespace

OptionCheck at_least(double least) {
  return numeric(fmt::format(">= {}", least), [least](double x) { return x >= least; });
}

OptionCheck greater_than(double bound) {
  return numeric(fmt::format("> {}", bound), [bound](double x) { return x > bound; });
}

OptionCheck between(double least, double most) {
  return numeric(fmt::format("in [{}, {}]", least, most),
                 [least, most](double x) { return x >= least && x <= most; });
}

OptionCheck below_one() {
  return numeric("in [0, 1)", [](double x) { return x >= 0.0 && x < 1.0; });
}

OptionCheck each(size_t least_size, OptionCheck element) {
  std::string text = fmt::format("{}, at least {} of them", element.text, least_size);
  return {std::move(text), [least_size, element](const ConfigValue& value) {
            const auto* array = value.get_if<ConfigArray>();
            return array == nullptr || (array->size() >= least_size &&
                                        std::all_of(array->begin(), array->end(), element.accepts));
          }};
}

OptionCheck one_of(std::vector<std::string> words) {
  std::string text = fmt::format("out of \"{}\"", fmt::join(words, "\", \""));
  return {std::move(text), [words = std::move(words)](const ConfigValue& value) {
            const std::string* found = value.get_if<std::string>();
            return found == nullptr || std::find(words.begin(), words.end(), *found) != words.end();
          }};
}

void KeyList::add_all(const KeyList& others) {
  keys_.insert(keys_.end(), others.keys_.begin(), others.keys_.end());
}

void KeyList::read(const ConfigTable& table,
                   const SourcePosition& at,
                   void* options,
                   FaultSink& faults) const {
  for (const ConfigEntry& entry : table.entries()) {
    if (const OptionKey* key = find_key(keys_, entry.key)) {
      FaultSink inside = faults.inside(entry.key);
      key->read(entry.value, options, inside);
    } else {
      faults.add(
          entry.key_position,
          fmt::format("unknown key \"{}\"{}", entry.key, suggestion(entry.key, names_of(keys_))));
    }
  }
  for (const OptionKey& key : keys_) {
    if (key.is_required && table.find(key.name) == nullptr) {
      faults.add(at,
                 fmt::format("missing key \"{}\": expected {}; {}", key.name, key.type, key.doc));
    }
  }
}

ConfigTable KeyList::write(const void* options) const {
  ConfigTable table;
  for (const OptionKey& key : keys_) {
    ConfigValue value = key.write(options);
    if (!value.is_absent()) {
      table.set(key.name, std::move(value));
    }
  }
  return table;
}

namespace detail {

void add_mismatch(const ConfigValue& found,
                  const std::string& type,
                  const std::string& check,
                  FaultSink& faults) {
  const std::string rule = check.empty() ? type : type + " " + check;
  faults.add(found.position(), fmt::format("expected {}, got {}", rule, found.to_text()));
}

std::nullopt_t mismatch(const ConfigValue& found, const std::string& type, FaultSink& faults) {
  add_mismatch(found, type, "", faults);
  return std::nullopt;
}

std::optional<int64_t> read_integer(const ConfigValue& value,
                                    int64_t least,
                                    int64_t most,
                                    FaultSink& faults) {
  const int64_t* found = value.get_if<int64_t>();
  if (found == nullptr) {
    return mismatch(value, "an integer", faults);
  }
  if (*found < least || *found > most) {
    return mismatch(value, fmt::format("an integer in [{}, {}]", least, most), faults);
  }
  return *found;
}

std::optional<double> read_number(const ConfigValue& value, FaultSink& faults) {
  const auto number = number_in(value);
  if (!number || !std::isfinite(*number)) {
    return mismatch(value, "a number", faults);
  }
  return *number;
}

std::optional<std::filesystem::path> read_path(const ConfigValue& value, FaultSink& faults) {
  const std::string* found = value.get_if<std::string>();
  return found != nullptr ? std::optional<std::filesystem::path>(expand_home(*found))
                          : mismatch(value, OptionType<std::filesystem::path>::name(), faults);
}

std::optional<Time> read_time(const ConfigValue& value, FaultSink& faults) {
  try {
    if (const int64_t* updates = value.get_if<int64_t>()) {
      return Time(*updates);
    }
    if (const double* fraction = value.get_if<double>()) {
      return Time(*fraction);
    }
    if (const std::string* text = value.get_if<std::string>()) {
      return Time(*text);
    }
    if (const bool* on = value.get_if<bool>(); on != nullptr && !*on) {
      return Time(0);
    }
  } catch (const UsageError& error) {
    faults.add(value.position(), error.what());
    return std::nullopt;
  }
  return mismatch(value, OptionType<Time>::name(), faults);
}

ConfigValue write_time(const Time& time) {
  switch (time.unit()) {
    case TimeUnit::Update:
      return ConfigValue(time.count());
    case TimeUnit::Fraction:
      return ConfigValue(time.value());
    default:
      return ConfigValue(time.to_string());
  }
}

template struct FieldKey<bool>;
template struct FieldKey<int64_t>;
template struct FieldKey<double>;
template struct FieldKey<std::string>;
template struct FieldKey<std::filesystem::path>;
template struct FieldKey<Time>;
template struct FieldKey<std::optional<int64_t>>;
template struct FieldKey<std::optional<double>>;
template struct FieldKey<std::vector<int64_t>>;
template struct FieldKey<std::vector<double>>;
template struct FieldKey<std::vector<std::string>>;

}  // namespace detail

}  // namespace rondo
