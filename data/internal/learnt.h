#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "core/state_dict.h"

// What data sets learn, as checkpoints hold it: `fitted` and `take_fitted`.

namespace rondo::detail {

/// \throws CheckpointError  when `state` is what a data set of another class learnt
inline void require_learnt_by(const std::string& owner, const StateDict& state) {
  if (const std::string& type = state.at("type").as_string(); type != owner) {
    throw CheckpointError(
        fmt::format("what the data set learnt is that of a {}, not of a {}", type, owner));
  }
}

inline StateList list_of(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

/// \throws CheckpointError  when it is no list of texts
inline std::vector<std::string> texts_of(const StateValue& list) {
  std::vector<std::string> texts;
  for (const StateValue& text : list.as_list()) {
    texts.push_back(text.as_string());
  }
  return texts;
}

}  // namespace rondo::detail
