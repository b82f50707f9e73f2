#include "loggers/tensorboard_logger.h"

#include "core/registry.h"
#include "loggers/event_file.h"
#include "trainer/trainer.h"

namespace rondo {

TensorBoardLogger::TensorBoardLogger(const Options& options) : directory_(options.summary_dir) {}

TensorBoardLogger::~TensorBoardLogger() = default;

void TensorBoardLogger::pre_setup(Trainer& trainer) {
  directory_ = trainer.options().model_dir / directory_;
}

void TensorBoardLogger::log(const Metrics& values, int64_t update) {
  std::vector<std::pair<std::string, float>> scalars;
  for (const Metrics::Item& item : values.items()) {
    if (const auto number = values.number(item.first);
        number && !std::holds_alternative<at::Tensor>(item.second)) {
      scalars.emplace_back(item.first, static_cast<float>(*number));
    }
  }
  if (scalars.empty()) {
    return;
  }
  if (!file_) {
    file_ = std::make_unique<EventFile>(directory_);
  }
  file_->add_scalars(update, scalars);
}

void TensorBoardLogger::flush() {
  if (file_) {
    file_->flush();
  }
}

void register_tensorboard_logger(Registry<Logger>& registry) {
  registry.add<TensorBoardLogger>("TensorBoardLogger", "Writes numbers as TensorBoard scalars.")
      .key("summary_dir",
           &TensorBoardLogger::Options::summary_dir,
           "directory, relative to model_dir");
}

}  // namespace rondo
