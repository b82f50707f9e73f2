#include "callbacks/writes_on_thread.h"

#include <fmt/format.h>

namespace rondo {

void warn_of_lost_values(const TextLog& log, const IoError& error) {
  log.warning(
      fmt::format("{}; the run continues, but what cannot be written is lost", error.what()));
}

std::string lost_entries(const CallbackMap& callbacks) {
  std::string text;
  for (const CallbackMap::Entry& entry : callbacks.entries()) {
    auto* const logger = dynamic_cast<WritesOnThread*>(entry.callback.get());
    if (const int64_t lost = logger == nullptr ? 0 : logger->lost(); lost > 0) {
      text += fmt::format("{}{} entries by {}", text.empty() ? "" : ", ", lost, entry.class_name);
    }
  }
  return text;
}

}  // namespace rondo
