#include "cli/print_entries.h"

#include <fmt/format.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <variant>

namespace rondo {

namespace {

/// Numbers, truths and short texts as they are, of others what they are.
std::string text_of(const StateValue& value) {
  constexpr size_t kShort = 60;
  if (const auto* number = std::get_if<int64_t>(&value.variant())) {
    return std::to_string(*number);
  }
  if (const auto* number = std::get_if<double>(&value.variant())) {
    return fmt::format("{}", *number);
  }
  if (const auto* truth = std::get_if<bool>(&value.variant())) {
    return *truth ? "true" : "false";
  }
  const auto* text = std::get_if<std::string>(&value.variant());
  const bool is_short =
      text != nullptr && text->size() <= kShort && text->find('\n') == std::string::npos;
  return is_short ? '"' + *text + '"' : value.kind();
}

void print_below(const std::string& path, const StateDict& state) {
  for (const StateDict::Item& item : state.items()) {
    const std::string here = path.empty() ? item.first : path + "/" + item.first;
    if (item.second.is_dict()) {
      print_below(here, item.second.as_dict());
    } else {
      std::cout << fmt::format("{}: {}\n", here, text_of(item.second));
    }
  }
}

}  // namespace

void print_entries(const StateDict& state) {
  print_below("", state);
}

}  // namespace rondo
