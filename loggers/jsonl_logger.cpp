#include "loggers/jsonl_logger.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/json.h"
#include "core/json_reader.h"
#include "core/registry.h"
#include "loggers/register.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// Update and name of a line that `log` wrote; nothing for another one.
std::optional<std::pair<int64_t, std::string>> update_and_name_in(std::string_view line) {
  constexpr std::string_view kStep = "{\"step\":";
  constexpr std::string_view kName = ",\"name\":";
  if (line.substr(0, kStep.size()) != kStep) {
    return std::nullopt;
  }
  line.remove_prefix(kStep.size());
  int64_t update = 0;
  const auto read = std::from_chars(line.data(), line.data() + line.size(), update);
  line.remove_prefix(static_cast<size_t>(read.ptr - line.data()));
  if (read.ec != std::errc() || line.substr(0, kName.size()) != kName) {
    return std::nullopt;
  }
  try {
    return std::pair(update, JsonReader(line.substr(kName.size())).string());
  } catch (const DataError&) {
    return std::nullopt;
  }
}

}  // namespace

void JsonlLogger::pre_setup(Trainer& trainer) {
  file_.set_path(trainer.options().model_dir / options_.path, trainer.log());
}

void JsonlLogger::log(const Metrics& values, int64_t update) {
  for (const Metrics::Item& item : values.items()) {
    if (!std::holds_alternative<at::Tensor>(item.second)) {
      file_.append(fmt::format("{{\"step\":{},\"name\":{},\"value\":{}}}",
                               update,
                               json_string(item.first),
                               json_value(item.second)));
    }
  }
  file_.check();  // after all of them: none is left out
}

void JsonlLogger::go_back(const LogPosition& position) {
  if (position.update == 0) {
    return file_.start_over();
  }
  file_.keep_lines([&](std::string_view line) {
    const auto value = update_and_name_in(line);
    return !value || !position.repeats(value->first, value->second);
  });
}

void register_jsonl_logger(Registry<Logger>& registry) {
  add_filter_keys(
      registry.add<JsonlLogger>("JsonlLogger", "Appends a JSON object for each value to a file.")
          .key("path", &JsonlLogger::Options::path, "file, relative to model_dir"));
}

}  // namespace rondo
