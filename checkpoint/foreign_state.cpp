#include "checkpoint/foreign_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_set>

#include "core/error.h"

namespace rondo {

namespace {

/// Names under which programs save a `state_dict()`.
constexpr std::array<std::string_view, 9> kUsualKeys = {"state_dict",
                                                        "model_state_dict",
                                                        "model",
                                                        "model_state",
                                                        "model_weights",
                                                        "module",
                                                        "net",
                                                        "network",
                                                        "weights"};

constexpr std::string_view kParallelPrefix = "module.";
constexpr std::string_view kCompiledPrefix = "_orig_mod.";

/// Dictionaries in dictionaries in dictionaries; deeper ones belong to something else.
constexpr int kDeepestKey = 3;

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

bool is_weights(const StateDict& dict) {
  return !dict.empty() &&
         std::all_of(dict.items().begin(), dict.items().end(), [](const StateDict::Item& item) {
           return item.second.is_tensor();
         });
}

bool is_optimizer(const StateDict& dict) {
  return dict.find("param_groups") != nullptr;
}

std::string last_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

bool is_usual(const std::string& path) {
  const std::string name = last_name(path);
  return std::find(kUsualKeys.begin(), kUsualKeys.end(), name) != kUsualKeys.end();
}

/// The paths of all dictionaries of tensors, those that are nearer to the root first.
std::vector<std::string> paths_of_weights(const StateDict& state) {
  std::vector<std::string> found;
  std::vector<std::pair<std::string, const StateDict*>> level = {{"", &state}};
  for (int depth = 0; depth < kDeepestKey; ++depth) {
    std::vector<std::pair<std::string, const StateDict*>> next;
    for (const auto& [path, dict] : level) {
      for (const auto& [name, value] : dict->items()) {
        if (!value.is_dict() || is_optimizer(value.as_dict())) {
          continue;
        }
        const std::string here = path.empty() ? name : path + "/" + name;
        if (is_weights(value.as_dict())) {
          found.push_back(here);
        } else {
          next.emplace_back(here, &value.as_dict());
        }
      }
    }
    level = std::move(next);
  }
  return found;
}

int depth_of(const std::string& path) {
  return static_cast<int>(std::count(path.begin(), path.end(), '/'));
}

/// Those with a usual name that are nearest to the root; all when none has one.
std::vector<std::string> best_of(const std::vector<std::string>& paths) {
  std::vector<std::string> best;
  for (const std::string& path : paths) {
    if (is_usual(path) && (best.empty() || depth_of(path) == depth_of(best.front()))) {
      best.push_back(path);
    }
  }
  return best.empty() ? paths : best;
}

[[noreturn]] void fail_to_choose(const StateDict& state, const std::vector<std::string>& paths) {
  if (paths.empty()) {
    throw CheckpointError(fmt::format(
        "the file holds no weights: expected tensors by name, alone or under a name such as "
        "\"state_dict\" or \"model\"; it has [{}]",
        fmt::join(state.names(), ", ")));
  }
  throw CheckpointError(
      fmt::format("the file holds weights under several names, [{}]: choose the model's, such as "
                  "checkpoint.load.key = \"{}\"",
                  fmt::join(paths, ", "),
                  paths.front()));
}

/// The tensors among the entries of the file itself.
StateDict tensors_of(const StateDict& state) {
  StateDict tensors;
  for (const auto& [name, value] : state.items()) {
    if (value.is_tensor()) {
      tensors.set(name, value);
    }
  }
  return tensors;
}

std::string key_of_weights(const StateDict& state) {
  if (is_weights(state)) {
    return "";
  }
  const std::vector<std::string> paths = best_of(paths_of_weights(state));
  if (paths.size() == 1) {
    return paths.front();
  }
  if (paths.empty() && !tensors_of(state).empty()) {
    return "";  // weights beside something like "epoch"
  }
  fail_to_choose(state, paths);
}

/// The dictionary that the user names, or the weights in it.
std::string key_in(const StateDict& state, const std::string& key) {
  const StateValue* value = state.find(key);
  if (value == nullptr || !value->is_dict()) {
    throw CheckpointError(fmt::format(
        "checkpoint.load.key: there are no weights under \"{}\"; there are some under [{}]",
        key,
        fmt::join(paths_of_weights(state), ", ")));
  }
  const std::string inside = key_of_weights(value->as_dict());
  return inside.empty() ? key : key + "/" + inside;
}

std::unordered_set<std::string> set_of(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

/// How many of `own` stand in `model` with each prefix.
std::map<std::string, size_t> count_by_prefix(const StateDict& model,
                                              const std::unordered_set<std::string>& own) {
  std::map<std::string, size_t> counts;
  for (const StateDict::Item& item : model.items()) {
    for (size_t begin = 0, dot = 0; dot != std::string::npos; begin = dot + 1) {
      if (own.count(item.first.substr(begin)) != 0) {
        ++counts[item.first.substr(0, begin)];
      }
      dot = item.first.find('.', begin);
    }
  }
  return counts;
}

}  // namespace

bool is_run_state(const StateDict& state) {
  const StateValue* metadata = state.find("__metadata__");
  return metadata != nullptr && metadata->is_dict() &&
         (metadata->as_dict().contains("version") || metadata->as_dict().contains("environment"));
}

ForeignWeights unwrap_weights(StateDict& state, const std::string& key) {
  ForeignWeights found;
  found.key = key.empty() ? key_of_weights(state) : key_in(state, key);
  StateDict weights = found.key.empty() ? tensors_of(state) : state.at(found.key).as_dict();
  const std::string section = found.key.substr(0, found.key.find('/'));
  for (const auto& [name, value] : state.items()) {
    if (found.key.empty() ? !value.is_tensor() : name != section) {
      found.unused.push_back(name);
    }
  }
  state = StateDict{{"model", std::move(weights)}};
  return found;
}

WrapperNames::WrapperNames(const std::vector<std::string>& own) {
  for (const std::string& name : own) {
    takes_module_ = takes_module_ && !starts_with(name, kParallelPrefix);
    takes_compiled_ = takes_compiled_ && name.find(kCompiledPrefix) == std::string::npos;
  }
}

std::string WrapperNames::without(std::string name) const {
  for (size_t at = 0; takes_compiled_ && (at = name.find(kCompiledPrefix)) != std::string::npos;) {
    name.erase(at, kCompiledPrefix.size());
  }
  if (takes_module_ && starts_with(name, kParallelPrefix)) {
    name.erase(0, kParallelPrefix.size());
  }
  return name;
}

void WrapperNames::take_off(StateDict& model) const {
  std::unordered_set<std::string> names;
  for (auto& [name, value] : model.items()) {
    name = without(std::move(name));
    if (!names.insert(name).second) {
      throw CheckpointError(fmt::format(
          "two entries of the file are \"{}\" without \"module.\" and \"_orig_mod.\"", name));
    }
  }
}

std::string take_off_prefix(StateDict& model, const std::vector<std::string>& own, bool strict) {
  const std::map<std::string, size_t> counts = count_by_prefix(model, set_of(own));
  size_t most = 0;
  for (const auto& [prefix, count] : counts) {
    most = std::max(most, count);
  }
  std::vector<std::string> best;
  for (const auto& [prefix, count] : counts) {
    if (count == most) {
      best.push_back(prefix);
    }
  }
  if (best.empty() || best.front().empty() || (strict && most < own.size())) {
    return "";
  }
  if (best.size() > 1) {
    throw CheckpointError(
        fmt::format("the file holds weights of this model with several prefixes, [{}]: choose by "
                    "checkpoint.load.rename, such as [[\"{}*\", \"*\"]], and leave out the others "
                    "by checkpoint.load.ignore, such as [\"model/{}*\"]",
                    fmt::join(best, ", "),
                    best[0],
                    best[1]));
  }
  const std::string prefix = best.front();
  StateDict kept;
  for (auto& [name, value] : model.items()) {
    if (starts_with(name, prefix)) {
      kept.items().emplace_back(name.substr(prefix.size()), std::move(value));
    }
  }
  model = std::move(kept);
  return prefix;
}

}  // namespace rondo
