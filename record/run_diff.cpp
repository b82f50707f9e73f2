#include "record/run_diff.h"

#include <cmath>
#include <set>

namespace rondo {

std::vector<std::string> differing_keys(const std::vector<const RunRecord*>& runs) {
  std::set<std::string> all;
  for (const RunRecord* run : runs) {
    for (const auto& [key, value] : run->config) {
      all.insert(key);
    }
  }
  std::vector<std::string> differing;
  for (const std::string& key : all) {
    const bool is_place = key == "trainer.init.model_dir";
    std::set<std::string> values;
    for (const RunRecord* run : runs) {
      const auto value = run->config.find(key);
      values.insert(value == run->config.end() ? "" : value->second);
    }
    if (values.size() > 1 && !is_place) {
      differing.push_back(key);
    }
  }
  return differing;
}

std::optional<int64_t> first_difference(const std::vector<RecordPoint>& a,
                                        const std::vector<RecordPoint>& b) {
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    if (i->step != j->step) {
      ++(i->step < j->step ? i : j);
      continue;
    }
    const bool are_nan = std::isnan(i->value) && std::isnan(j->value);
    if (i->value != j->value && !are_nan) {
      return i->step;
    }
    ++i;
    ++j;
  }
  return std::nullopt;
}

}  // namespace rondo
