#pragma once

#include <string>
#include <vector>

#include "core/state_dict.h"

namespace rondo::detail {

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
