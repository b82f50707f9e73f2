#include "loggers/logger.h"

#include <algorithm>

#include "core/glob.h"

namespace rondo {

bool LogPosition::repeats(int64_t value_update, std::string_view name) const {
  const auto is_in = [&](const std::string& scope) {
    return !scope.empty() && name.size() > scope.size() && name[scope.size()] == '/' &&
           name.compare(0, scope.size(), scope) == 0;
  };
  return value_update > update ||
         (value_update == update && std::any_of(repeated.begin(), repeated.end(), is_in));
}

const LogFilter& Logger::filter() const {
  static const LogFilter kNone;
  return kNone;
}

bool LogFilter::takes(std::string_view name) const {
  return !matches_any(exclude, name);
}

}  // namespace rondo
