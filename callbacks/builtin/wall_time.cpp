#include "callbacks/builtin/internal/wall_time.h"

#include "core/require.h"

namespace rondo::detail {

double seconds_in(const std::string& unit, const std::string& option) {
  constexpr double kMinute = 60.0;
  constexpr double kHour = 60.0 * kMinute;
  constexpr double kDay = 24.0 * kHour;
  if (unit == "seconds") {
    return 1.0;
  }
  if (unit == "minutes") {
    return kMinute;
  }
  if (unit == "hours") {
    return kHour;
  }
  require(unit == "days", option, R"("seconds", "minutes", "hours" or "days")", unit);
  return kDay;
}

}  // namespace rondo::detail
