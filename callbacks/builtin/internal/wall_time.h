#pragma once

#include <string>

namespace rondo::detail {

/// Seconds of one "seconds", "minutes", "hours" or "days".
/// \param option  whose value it is, for the message
/// \throws UsageError  for another word
double seconds_in(const std::string& unit, const std::string& option);

}  // namespace rondo::detail
