#include "loggers/csv_logger.h"

#include <fmt/format.h>

#include "core/csv.h"
#include "core/registry.h"
#include "trainer/trainer.h"

namespace rondo {

void CsvLogger::pre_setup(Trainer& trainer) {
  file_.set_path(trainer.options().model_dir / options_.path);
}

void CsvLogger::log(const Metrics& values, int64_t update) {
  if (!has_names_) {
    std::error_code missing;
    if (std::filesystem::file_size(file_.path(), missing) == 0 || missing) {
      file_.append("step,name,value");
    }
    has_names_ = true;
  }
  for (const Metrics::Item& item : values.items()) {
    if (!std::holds_alternative<at::Tensor>(item.second)) {
      file_.append(fmt::format(
          "{},{},{}", update, csv_field(item.first), csv_field(to_string(item.second))));
    }
  }
}

void register_csv_logger(Registry<Logger>& registry) {
  registry.add<CsvLogger>("CsvLogger", "Appends a line for each value to a comma-separated file.")
      .key("path", &CsvLogger::Options::path, "file, relative to model_dir");
}

}  // namespace rondo
