#include "optim/schedules/schedule_table.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"

namespace rondo::detail {

void check_number(const std::string& option, const OptionCheck& check, double number) {
  if (!std::isfinite(number) || (check.accepts && !check.accepts(ConfigValue(number)))) {
    throw UsageError(fmt::format("{}: expected a finite number{}{}, got {}",
                                 option,
                                 check.text.empty() ? "" : " ",
                                 check.text,
                                 number));
  }
}

void refuse(const std::string& scheduler, const std::string& fault) {
  if (!fault.empty()) {
    throw UsageError(scheduler + "." + fault);
  }
}

}  // namespace rondo::detail
