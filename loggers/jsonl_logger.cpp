#include "loggers/jsonl_logger.h"

#include <fmt/format.h>

#include "core/json.h"
#include "core/registry.h"
#include "trainer/trainer.h"

namespace rondo {

void JsonlLogger::pre_setup(Trainer& trainer) {
  file_.set_path(trainer.options().model_dir / options_.path);
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
}

void register_jsonl_logger(Registry<Logger>& registry) {
  registry.add<JsonlLogger>("JsonlLogger", "Appends a JSON object for each value to a file.")
      .key("path", &JsonlLogger::Options::path, "file, relative to model_dir");
}

}  // namespace rondo
