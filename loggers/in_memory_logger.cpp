#include "loggers/in_memory_logger.h"

#include <algorithm>

#include "core/registry.h"
#include "loggers/register.h"

namespace rondo {

void InMemoryLogger::log(const Metrics& values, int64_t update) {
  for (const Metrics::Item& item : values.items()) {
    entries_.push_back({update, item.first, item.second});
  }
}

void InMemoryLogger::go_back(const LogPosition& position) {
  entries_.erase(std::remove_if(entries_.begin(),
                                entries_.end(),
                                [&](const Entry& entry) {
                                  return position.repeats(entry.update, entry.name);
                                }),
                 entries_.end());
}

std::vector<std::pair<int64_t, double>> InMemoryLogger::numbers(const std::string& name) const {
  std::vector<std::pair<int64_t, double>> found;
  for (const Entry& entry : entries_) {
    if (entry.name != name) {
      continue;
    }
    if (const auto number = Metrics{{entry.name, entry.value}}.number(name)) {
      found.emplace_back(entry.update, *number);
    }
  }
  return found;
}

void register_in_memory_logger(Registry<Logger>& registry) {
  add_filter_keys(registry.add<InMemoryLogger>(
      "InMemoryLogger", "Keeps what was logged for the program that trains."));
}

}  // namespace rondo
