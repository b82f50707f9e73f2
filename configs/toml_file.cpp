#include "configs/toml_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include "configs/internal/nesting.h"
#include "core/error.h"
#include "core/file_system.h"

namespace rondo {

namespace {

constexpr size_t kLargestFile = size_t{1} << 20;  // a config is read by people

SourcePosition position_of(const toml::source_region& region, const std::string& file) {
  return {file, static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
}

/// Turns toml++'s tree into rondo's; what configs do not have becomes a fault.
class Converter {
 public:
  Converter(const std::string& file, std::vector<Fault>& faults) : file_(file), faults_(faults) {}

  ConfigTable table(const toml::table& from) const {
    // toml++ sorts its keys; ours keep the order of the file.
    std::vector<std::pair<toml::source_region, std::pair<std::string, const toml::node*>>> items;
    for (const auto& [key, value] : from) {
      items.push_back({key.source(), {std::string(key.str()), &value}});
    }
    std::stable_sort(items.begin(), items.end(), [](const auto& a, const auto& b) {
      return a.first.begin < b.first.begin;
    });
    ConfigTable to;
    for (const auto& item : items) {
      to.set(item.second.first, value(*item.second.second), position_of(item.first, file_));
    }
    return to;
  }

 private:
  ConfigValue value(const toml::node& node) const {
    const SourcePosition at = position_of(node.source(), file_);
    if (const auto* nested = node.as_table()) {
      return ConfigValue(table(*nested), at);
    }
    if (const auto* array = node.as_array()) {
      ConfigArray values;
      for (const toml::node& element : *array) {
        values.push_back(value(element));
      }
      return ConfigValue(std::move(values), at);
    }
    if (const auto* text = node.as_string()) {
      return ConfigValue(text->get(), at);
    }
    if (const auto* integer = node.as_integer()) {
      return ConfigValue(integer->get(), at);
    }
    if (const auto* number = node.as_floating_point()) {
      return ConfigValue(number->get(), at);
    }
    if (const auto* truth = node.as_boolean()) {
      return ConfigValue(truth->get(), at);
    }
    faults_.push_back({at, "", "dates and times of day are not used in configs; write a string"});
    return ConfigValue(ConfigValue::Variant{}, at);
  }

  const std::string& file_;
  std::vector<Fault>& faults_;
};

[[noreturn]] void refuse(SourcePosition at, std::string message) {
  std::vector<Fault> faults;
  faults.push_back({std::move(at), "", std::move(message)});
  throw ConfigError(std::move(faults));
}

/// Refuses what is too large or too deep to be walked safely.
void check_bounds(std::string_view text, const std::string& file) {
  if (text.size() > kLargestFile) {
    refuse({file, 0, 0},
           fmt::format("the file has {} bytes, a config at most {}", text.size(), kLargestFile));
  }
  if (const auto offset = detail::find_too_deep(text, detail::kDeepestNesting)) {
    const std::string_view before = text.substr(0, *offset);
    const auto line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
    const size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
    refuse({file, line, static_cast<int>(*offset - line_begin) + 1},
           fmt::format("keys and brackets nest deeper than {}", detail::kDeepestNesting));
  }
}

/// One section and those inside it.
void write_section(const std::string& path, const ConfigTable& table, std::string& out) {
  std::string own;
  for (const ConfigEntry& entry : table.entries()) {
    if (entry.value.get_if<ConfigTable>() == nullptr) {
      own += fmt::format("{} = {}\n", toml_key(entry.key), entry.value.to_text());
    }
  }
  const bool has_own = !own.empty() || table.empty();
  if (!path.empty() && has_own) {
    out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", path);
  }
  out += own;
  for (const ConfigEntry& entry : table.entries()) {
    if (const auto* nested = entry.value.get_if<ConfigTable>()) {
      write_section(
          path.empty() ? toml_key(entry.key) : path + "." + toml_key(entry.key), *nested, out);
    }
  }
}

}  // namespace

ConfigValue read_toml_file(const std::filesystem::path& path) {
  return parse_toml(real_file_system()->read(path), path.string());
}

ConfigValue parse_toml(std::string_view text, const std::string& file) {
  check_bounds(text, file);
  std::vector<Fault> faults;
  ConfigTable root;
  try {
    root = Converter(file, faults).table(toml::parse(text, file));
  } catch (const toml::parse_error& error) {
    refuse(position_of(error.source(), file), std::string(error.description()));
  }
  if (!faults.empty()) {
    throw ConfigError(std::move(faults));
  }
  return ConfigValue(std::move(root), {file, 1, 1});
}

std::string write_toml(const ConfigTable& table) {
  std::string out;
  write_section("", table, out);
  return out;
}

}  // namespace rondo
