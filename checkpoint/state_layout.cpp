#include "checkpoint/state_layout.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

namespace rondo {

namespace {

using Lines = std::vector<std::string>;

std::string joined(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "/" + name;
}

bool is_list(const StateValue& value) {
  return std::holds_alternative<StateList>(value.variant());
}

/// True for what `StateValue::as_double` reads.
bool is_number(const StateValue& value) {
  const bool is_plain = std::holds_alternative<double>(value.variant()) ||
                        std::holds_alternative<int64_t>(value.variant());
  return is_plain || (value.is_tensor() && value.as_tensor().dim() == 0 &&
                      value.as_tensor().is_floating_point());
}

bool is_float_scalar(const StateValue& value) {
  return std::holds_alternative<double>(value.variant()) ||
         (value.is_tensor() && value.as_tensor().dim() == 0 &&
          value.as_tensor().is_floating_point());
}

void compare(const StateValue& own, const StateValue& saved, const std::string& path, Lines& found);

void compare(const StateDict& own, const StateDict& saved, const std::string& path, Lines& found) {
  for (const StateDict::Item& item : own.items()) {
    const std::string here = joined(path, item.first);
    if (const StateValue* other = saved.find(item.first)) {
      compare(item.second, *other, here, found);
    } else {
      found.push_back(fmt::format("missing: {}", here));
    }
  }
  for (const StateDict::Item& item : saved.items()) {
    if (!own.contains(item.first)) {
      found.push_back(fmt::format("unexpected: {}", joined(path, item.first)));
    }
  }
}

void compare(const StateList& own, const StateList& saved, const std::string& path, Lines& found) {
  if (own.size() != saved.size()) {
    found.push_back(
        fmt::format("{}: expected {} elements, found {}", path, own.size(), saved.size()));
    return;
  }
  for (size_t i = 0; i < own.size(); ++i) {
    compare(own[i], saved[i], joined(path, std::to_string(i)), found);
  }
}

void compare(const StateValue& own,
             const StateValue& saved,
             const std::string& path,
             Lines& found) {
  if (own.is_dict() && saved.is_dict()) {
    compare(own.as_dict(), saved.as_dict(), path, found);
    return;
  }
  if (is_list(own) && is_list(saved)) {
    compare(own.as_list(), saved.as_list(), path, found);
    return;
  }
  const auto* text = std::get_if<std::string>(&own.variant());
  const auto* other = std::get_if<std::string>(&saved.variant());
  if (text != nullptr && other != nullptr) {
    if (*text != *other) {
      found.push_back(fmt::format("{}: expected \"{}\", found \"{}\"", path, *text, *other));
    }
    return;
  }
  const bool is_value = is_float_scalar(own) && is_number(saved);
  if (!is_value && own.kind() != saved.kind()) {
    found.push_back(fmt::format("{}: expected {}, found {}", path, own.kind(), saved.kind()));
  }
}

}  // namespace

std::vector<std::string> layout_differences(const StateDict& own, const StateDict& saved) {
  Lines found;
  compare(own, saved, "", found);
  return found;
}

}  // namespace rondo
