#include "checkpoint/partial_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "core/error.h"
#include "core/glob.h"

namespace rondo {

namespace {

constexpr std::string_view kRoot = "state/";

std::vector<std::string> without_root(std::vector<std::string> globs) {
  for (std::string& glob : globs) {
    if (glob.compare(0, kRoot.size(), kRoot) == 0) {
      glob.erase(0, kRoot.size());
    }
  }
  return globs;
}

/// True when the glob matches the entry or a dictionary that it lies in.
bool matches(const std::string& glob, std::string_view path) {
  for (size_t end = path.find('/');; end = path.find('/', end + 1)) {
    if (glob_match(glob, path.substr(0, end))) {
      return true;
    }
    if (end == std::string_view::npos) {
      return false;
    }
  }
}

bool any_matches(const std::vector<std::string>& globs, std::string_view path) {
  return std::any_of(
      globs.begin(), globs.end(), [&](const std::string& glob) { return matches(glob, path); });
}

/// Calls `visit(path, value)` for everything that is no dictionary, and for empty ones.
void for_each_entry(const StateDict& state,
                    const std::string& path,
                    const std::function<void(const std::string&, const StateValue&)>& visit) {
  for (const StateDict::Item& item : state.items()) {
    const std::string here = path.empty() ? item.first : path + "/" + item.first;
    if (item.second.is_dict() && !item.second.as_dict().empty()) {
      for_each_entry(item.second.as_dict(), here, visit);
    } else {
      visit(here, item.second);
    }
  }
}

/// Adds to `result` what of `from` is meant, or what is not.
void add(const StateDict& from,
         const std::string& path,
         const EntryFilter& is_meant,
         bool meant,
         StateDict& result) {
  for (const StateDict::Item& item : from.items()) {
    const std::string here = path.empty() ? item.first : path + "/" + item.first;
    if (item.second.is_dict() && !item.second.as_dict().empty()) {
      StateValue* known = result.find(item.first);
      StateDict inside = known != nullptr && known->is_dict() ? known->as_dict() : StateDict{};
      add(item.second.as_dict(), here, is_meant, meant, inside);
      if (!inside.empty()) {
        result.set(item.first, std::move(inside));
      }
    } else if (is_meant(here) == meant) {
      result.set(item.first, item.second);
    }
  }
}

/// What becomes of the entries of one section, by their paths in it.
struct SectionChoice {
  std::string name;
  std::vector<std::string> loaded;
  std::vector<std::string> kept;      // the run's own
  std::vector<std::string> left_out;  // the file's, under names that the run does not have
};

/// " (a, b, c and 7 more)", or nothing for a section that is one entry.
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kMost = 6;
  const size_t shown = std::min(names.size(), kMost);
  const std::string list = fmt::format("{}", fmt::join(names.begin(), names.begin() + shown, ", "));
  if (list.empty()) {
    return "";
  }
  return shown == names.size() ? fmt::format(" ({})", list)
                               : fmt::format(" ({} and {} more)", list, names.size() - shown);
}

std::string describe(const SectionChoice& section) {
  std::string text = fmt::format("{}: {} loaded", section.name, section.loaded.size());
  if (!section.kept.empty()) {
    text +=
        fmt::format(", {} initialised by the run{}", section.kept.size(), some_of(section.kept));
  }
  if (!section.left_out.empty()) {
    text += fmt::format(
        ", {} of the file left out{}", section.left_out.size(), some_of(section.left_out));
  }
  return text;
}

/// The section of an entry, which is added when it is new.
SectionChoice& section_of(const std::string& path, std::vector<SectionChoice>& sections) {
  const std::string name = path.substr(0, path.find('/'));
  for (SectionChoice& section : sections) {
    if (section.name == name) {
      return section;
    }
  }
  sections.emplace_back().name = name;
  return sections.back();
}

/// The path of an entry in its section; "" when it is the section.
std::string inner_path(const std::string& path) {
  const size_t slash = path.find('/');
  return slash == std::string::npos ? "" : path.substr(slash + 1);
}

std::vector<SectionChoice> choices(const StateDict& saved,
                                   const StateDict& own,
                                   const EntryFilter& is_meant) {
  std::vector<SectionChoice> sections;
  for_each_entry(saved, "", [&](const std::string& path, const StateValue&) {
    SectionChoice& section = section_of(path, sections);
    if (is_meant(path)) {
      section.loaded.push_back(inner_path(path));
    } else if (!own.contains(path)) {
      section.left_out.push_back(inner_path(path));
    }
  });
  for_each_entry(own, "", [&](const std::string& path, const StateValue&) {
    if (!is_meant(path) || !saved.contains(path)) {
      section_of(path, sections).kept.push_back(inner_path(path));
    }
  });
  return sections;
}

/// The texts that the wildcards of a glob stand for, the shortest first; nothing when it does not
/// match.
std::optional<std::vector<std::string>> captures(std::string_view glob, std::string_view text) {
  if (glob.empty()) {
    return text.empty() ? std::optional<std::vector<std::string>>(std::in_place) : std::nullopt;
  }
  if (glob[0] == '*') {
    for (size_t length = 0; length <= text.size(); ++length) {
      if (auto rest = captures(glob.substr(1), text.substr(length))) {
        rest->insert(rest->begin(), std::string(text.substr(0, length)));
        return rest;
      }
    }
    return std::nullopt;
  }
  const bool fits = !text.empty() && (glob[0] == '?' || glob[0] == text[0]);
  return fits ? captures(glob.substr(1), text.substr(1)) : std::nullopt;
}

std::string fill(const std::string& pattern, const std::vector<std::string>& texts) {
  std::string name;
  size_t next = 0;
  for (const char c : pattern) {
    if (c == '*' && next < texts.size()) {
      name += texts[next++];
    } else {
      name += c;
    }
  }
  return name;
}

using Globs = std::vector<std::pair<std::string, std::string>>;

void rename_in(StateDict& names, const Globs& globs, std::vector<bool>& used) {
  StateDict renamed;
  for (StateDict::Item& item : names.items()) {
    std::string name = item.first;
    for (size_t i = 0; i < globs.size(); ++i) {
      if (const auto texts = captures(globs[i].first, item.first)) {
        name = fill(globs[i].second, *texts);
        used[i] = true;
        break;
      }
    }
    const auto same = [&](const StateDict::Item& other) { return other.first == name; };
    if (std::any_of(renamed.items().begin(), renamed.items().end(), same)) {
      throw CheckpointError(fmt::format(
          "renaming gives two entries the name \"{}\"; one of them was \"{}\"", name, item.first));
    }
    renamed.set(name, std::move(item.second));
  }
  names = std::move(renamed);
}

}  // namespace

EntryFilter::EntryFilter(std::vector<std::string> include, std::vector<std::string> ignore)
    : include_(without_root(std::move(include))), ignore_(without_root(std::move(ignore))) {}

bool EntryFilter::operator()(std::string_view path) const {
  return (include_.empty() || any_matches(include_, path)) && !any_matches(ignore_, path);
}

std::vector<std::string> EntryFilter::unmatched(const StateDict& state) const {
  std::vector<std::string> rest = include_;
  rest.insert(rest.end(), ignore_.begin(), ignore_.end());
  for_each_entry(state, "", [&](const std::string& path, const StateValue&) {
    const auto is_used = [&](const std::string& glob) { return matches(glob, path); };
    rest.erase(std::remove_if(rest.begin(), rest.end(), is_used), rest.end());
  });
  return rest;
}

StateDict take_entries(const StateDict& saved, const StateDict& own, const EntryFilter& is_meant) {
  StateDict result;
  add(saved, "", is_meant, true, result);
  add(own, "", is_meant, false, result);
  return result;
}

std::string describe_choice(const StateDict& saved,
                            const StateDict& own,
                            const EntryFilter& is_meant) {
  std::vector<std::string> loaded;
  std::vector<std::string> others;
  for (const SectionChoice& section : choices(saved, own, is_meant)) {
    if (section.loaded.empty()) {
      others.push_back(section.name);
    } else {
      loaded.push_back(describe(section));
    }
  }
  if (!others.empty()) {
    loaded.push_back(fmt::format("not loaded: {}", fmt::join(others, ", ")));
  }
  return fmt::format("{}", fmt::join(loaded, "; "));
}

std::vector<std::string> rename_parameters(StateDict& state, const Globs& globs) {
  std::vector<bool> used(globs.size(), false);
  std::vector<std::string> places = {"model", "optimizer/state", "sparsity/masks"};
  const StateValue* const several = state.find("optimizers");
  for (const auto& item : several != nullptr && several->is_dict()
                              ? several->as_dict().items()
                              : std::vector<StateDict::Item>()) {
    places.push_back("optimizers/" + item.first + "/state");
  }
  for (const std::string& place : places) {
    StateValue* names = state.find(place);
    if (names != nullptr && names->is_dict()) {
      rename_in(names->as_dict(), globs, used);
    }
  }
  std::vector<std::string> unmatched;
  for (size_t i = 0; i < globs.size(); ++i) {
    if (!used[i]) {
      unmatched.push_back(globs[i].first);
    }
  }
  return unmatched;
}

}  // namespace rondo
