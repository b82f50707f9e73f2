#include "distributed/handshake.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

namespace rondo {

namespace {

/// The first line in which two texts differ.
struct Difference {
  std::string first;
  std::string second;
};

std::string line_of(const std::string& line, bool is_there) {
  return is_there ? "\"" + line + "\"" : "nothing";
}

Difference difference_of(const std::string& first, const std::string& second) {
  std::istringstream lines_of_first(first);
  std::istringstream lines_of_second(second);
  while (true) {
    std::string a;
    std::string b;
    const bool has_a = static_cast<bool>(std::getline(lines_of_first, a));
    const bool has_b = static_cast<bool>(std::getline(lines_of_second, b));
    if (a != b || has_a != has_b || !has_a) {
      return {line_of(a, has_a), line_of(b, has_b)};
    }
  }
}

}  // namespace

std::string difference_of_facts(Communicator& ranks, const std::vector<RankFact>& facts) {
  for (const RankFact& fact : facts) {
    const std::vector<std::string> values = ranks.all_gather(fact.value);
    std::vector<size_t> others;
    for (size_t rank = 1; rank < values.size(); ++rank) {
      if (values[rank] != values[0]) {
        others.push_back(rank);
      }
    }
    if (!others.empty()) {
      const Difference found = difference_of(values[0], values[others.front()]);
      return fmt::format("ranks differ in {}: rank {} has {}, rank 0 has {}",
                         fact.name,
                         fmt::join(others, ", "),
                         found.second,
                         found.first);
    }
  }
  return "";
}

void require_same_facts(Communicator& ranks, const std::vector<RankFact>& facts) {
  const std::string difference = difference_of_facts(ranks, facts);
  if (!difference.empty()) {
    throw RankMismatchError(difference);
  }
}

}  // namespace rondo
