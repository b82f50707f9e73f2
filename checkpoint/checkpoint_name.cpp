#include "checkpoint/checkpoint_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <ctime>
#include <regex>

#include "checkpoint/internal/compression.h"
#include "core/error.h"
#include "core/glob.h"

namespace rondo {

namespace {

/// A field: how its value reads, and what text it may have been.
struct Field {
  const char* name;
  std::string (*format)(const CheckpointNameValues&);
  const char* regex;
};

std::string utc(const CheckpointNameValues& values, const char* format) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(values.now);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

constexpr const char kNumber[] = "([0-9]+)";
constexpr const char kSeconds[] = "([0-9]+\\.[0-9]{3})";

std::string seconds(double count) {
  return fmt::format("{:.3f}", count);
}

using Values = const CheckpointNameValues&;

const Field kFields[] = {
    {"step", [](Values v) { return std::to_string(v.time.update); }, kNumber},
    {"epoch", [](Values v) { return std::to_string(v.time.epoch); }, kNumber},
    {"batch", [](Values v) { return std::to_string(v.time.batch); }, kNumber},
    {"batch_in_epoch", [](Values v) { return std::to_string(v.time.batch_in_epoch); }, kNumber},
    {"sample", [](Values v) { return std::to_string(v.time.sample); }, kNumber},
    {"sample_in_epoch", [](Values v) { return std::to_string(v.time.sample_in_epoch); }, kNumber},
    {"token", [](Values v) { return std::to_string(v.time.token); }, kNumber},
    {"token_in_epoch", [](Values v) { return std::to_string(v.time.token_in_epoch); }, kNumber},
    {"total_wct", [](Values v) { return seconds(v.time.total_seconds); }, kSeconds},
    {"epoch_wct", [](Values v) { return seconds(v.time.epoch_seconds); }, kSeconds},
    {"batch_wct", [](Values v) { return seconds(v.time.batch_seconds); }, kSeconds},
    {"rank", [](Values v) { return std::to_string(v.rank); }, kNumber},
    {"world_size", [](Values v) { return std::to_string(v.world_size); }, kNumber},
    {"local_rank", [](Values v) { return std::to_string(v.local_rank); }, kNumber},
    {"node_rank", [](Values v) { return std::to_string(v.node_rank); }, kNumber},
    // The shortest run name that fits: a longer one would swallow the step before a suffix.
    {"run_name", [](Values v) { return v.run_name; }, "(.+?)"},
    {"date", [](Values v) { return utc(v, "%Y%m%d"); }, "([0-9]{8})"},
    {"time", [](Values v) { return utc(v, "%H%M%S"); }, "([0-9]{6})"},
};

constexpr const char kSuffixRegex[] = "(?:_([0-9]{8}_[0-9]{6}))?";

const Field* find_field(std::string_view name) {
  const Field* found = std::find_if(
      std::begin(kFields), std::end(kFields), [name](const Field& f) { return f.name == name; });
  return found == std::end(kFields) ? nullptr : found;
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (std::string_view("\\^$.|?*+()[]{}").find(c) != std::string_view::npos) {
      result += '\\';
    }
    result += c;
  }
  return result;
}

/// Where the suffix goes in the text after the last field: before the last extension, and before
/// both in ".pt.zst".
size_t suffix_position(const std::string& last_text) {
  const size_t dot = last_text.rfind('.');
  if (dot == std::string::npos) {
    return last_text.size();
  }
  const bool is_compressed =
      detail::compression_of_name("x" + last_text.substr(dot)) != detail::Compression::None;
  const size_t inner = is_compressed && dot > 0 ? last_text.rfind('.', dot - 1) : dot;
  return inner == std::string::npos ? dot : inner;
}

bool is_time(const std::string& suffix) {
  std::tm parts{};
  const char* end = ::strptime(suffix.c_str(), "%Y%m%d_%H%M%S", &parts);
  return end != nullptr && *end == '\0';
}

}  // namespace

struct CheckpointName::Matcher {
  std::regex regex;
  size_t step_group = 0;
};

CheckpointName::CheckpointName(std::string pattern) : pattern_(std::move(pattern)) {
  std::string_view rest = pattern_;
  while (true) {
    const size_t open = rest.find_first_of("{}");
    parts_.push_back({std::string(rest.substr(0, open)), false});
    if (open == std::string_view::npos) {
      break;
    }
    const size_t close = rest.find_first_of("{}", open + 1);
    if (rest[open] != '{' || close == std::string_view::npos || rest[close] != '}') {
      throw UsageError(fmt::format("checkpoint_name \"{}\": an unmatched brace", pattern_));
    }
    parts_.push_back({std::string(rest.substr(open + 1, close - open - 1)), true});
    rest.remove_prefix(close + 1);
  }
  check_parts();
  matcher_ = make_matcher();
}

void CheckpointName::check_parts() const {
  const auto fail = [this](const std::string& what) {
    throw UsageError(fmt::format("checkpoint_name \"{}\": {}", pattern_, what));
  };
  if (pattern_.find('/') != std::string::npos) {
    fail("expected the name of a file, without \"/\"; a directory is given by checkpoint_root");
  }
  const std::string extension = std::filesystem::path(pattern_).extension();
  if (extension == ".tmp") {
    fail("expected another ending than \".tmp\": rondo removes files of such names as leftovers");
  }
  if (extension == ".safetensors") {
    fail(
        "expected another ending than \".safetensors\", which holds a model alone; `rondo "
        "checkpoint convert` writes such files");
  }
  std::vector<std::string> seen;
  for (size_t i = 1; i < parts_.size(); i += 2) {
    const std::string& field = parts_[i].text;
    if (find_field(field) == nullptr) {
      std::vector<std::string> known;
      for (const Field& candidate : kFields) {
        known.emplace_back(candidate.name);
      }
      fail(fmt::format("unknown field {{{}}}{}", field, suggestion(field, std::move(known))));
    }
    if (std::find(seen.begin(), seen.end(), field) != seen.end()) {
      fail(fmt::format("the field {{{}}} occurs twice", field));
    }
    seen.push_back(field);
    const std::string& before = parts_[i - 1].text;
    if (i > 1 && std::all_of(before.begin(), before.end(), [](unsigned char c) {
          return std::isdigit(c) != 0;
        })) {
      fail(fmt::format("expected text other than digits before {{{}}}", field));
    }
  }
  if (std::find(seen.begin(), seen.end(), "step") == seen.end()) {
    fail("expected the field {step}, as in \"checkpoint_{step}.pt\"");
  }
  try {
    detail::compression_of_name(pattern_);
  } catch (const UsageError& error) {
    fail(error.what());
  }
}

std::shared_ptr<const CheckpointName::Matcher> CheckpointName::make_matcher() const {
  Matcher matcher;
  std::string regex;
  for (size_t i = 0; i + 1 < parts_.size(); i += 2) {
    regex += escaped(parts_[i].text) + find_field(parts_[i + 1].text)->regex;
    if (parts_[i + 1].text == "step") {
      matcher.step_group = i / 2 + 1;
    }
  }
  const std::string& last = parts_.back().text;
  const size_t split = suffix_position(last);
  regex += escaped(last.substr(0, split)) + kSuffixRegex + escaped(last.substr(split));
  matcher.regex = std::regex(regex, std::regex::ECMAScript | std::regex::optimize);
  return std::make_shared<const Matcher>(std::move(matcher));
}

bool CheckpointName::is_compressed() const {
  return detail::compression_of_name(pattern_) != detail::Compression::None;
}

std::string CheckpointName::format(const CheckpointNameValues& values) const {
  std::string name;
  for (const Part& part : parts_) {
    name += part.is_field ? find_field(part.text)->format(values) : part.text;
  }
  if (name.find('/') != std::string::npos) {
    throw UsageError(fmt::format("run name \"{}\": expected no \"/\"", values.run_name));
  }
  return name;
}

std::string CheckpointName::format_with_suffix(const CheckpointNameValues& values) const {
  const std::string& last = parts_.back().text;
  std::string name = format(values);
  name.insert(name.size() - last.size() + suffix_position(last), utc(values, "_%Y%m%d_%H%M%S"));
  return name;
}

std::optional<CheckpointStep> CheckpointName::match(std::string_view name) const {
  std::match_results<std::string_view::const_iterator> groups;
  if (!std::regex_match(name.begin(), name.end(), groups, matcher_->regex)) {
    return std::nullopt;
  }
  CheckpointStep found;
  const std::string step = groups[matcher_->step_group].str();
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), found.step);
  found.suffix = groups[groups.size() - 1].str();
  if (error != std::errc() || (!found.suffix.empty() && !is_time(found.suffix))) {
    return std::nullopt;
  }
  return found;
}

std::filesystem::path free_checkpoint_path(FileSystem& files,
                                           const std::filesystem::path& directory,
                                           const CheckpointName& name,
                                           CheckpointNameValues values) {
  std::filesystem::path path = directory / name.format(values);
  for (; files.exists(path); values.now += std::chrono::seconds(1)) {
    path = directory / name.format_with_suffix(values);
  }
  return path;
}

}  // namespace rondo
