#include "data/optional_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace rondo {

namespace {

const OptionalReader& reader(std::string_view name) {
  const std::vector<OptionalReader>& all = optional_readers();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
  if (found == all.end()) {
    throw UsageError(fmt::format("there is no optional reader \"{}\"", name));
  }
  return *found;
}

std::string advice(const OptionalReader& reader) {
  return fmt::format(
      "install {} and build rondo with -DRONDO_WITH_{}=ON", reader.package, reader.name);
}

}  // namespace

std::string not_built_note(std::string_view name) {
  const OptionalReader& found = reader(name);
  return found.is_built ? "" : fmt::format(" ({} is not built: {})", name, advice(found));
}

void require_reader(std::string_view name, const std::string& user) {
  if (!reader(name).is_built) {
    throw UsageError(without_reader(name, user));
  }
}

std::string without_reader(std::string_view name, const std::string& user) {
  return fmt::format("{}: this rondo was built without {}: {}", user, name, advice(reader(name)));
}

}  // namespace rondo
