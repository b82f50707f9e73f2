#include "loggers/tensorboard_logger.h"

#include "core/registry.h"
#include "core/writable_path.h"
#include "loggers/event_file.h"
#include "trainer/trainer.h"

namespace rondo {

TensorBoardLogger::TensorBoardLogger(const Options& options) : directory_(options.summary_dir) {}

TensorBoardLogger::~TensorBoardLogger() = default;

void TensorBoardLogger::pre_setup(Trainer& trainer) {
  directory_ = trainer.options().model_dir / directory_;
  require_writable_folder(directory_);
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

void TensorBoardLogger::go_back(const LogPosition& position) {
  const size_t own = file_ ? 1 : 0;
  if (position.update == 0 ? event_files(directory_).size() == own
                           : event_files(directory_).empty()) {
    return;  // nothing to go back from
  }
  if (!file_) {
    file_ = std::make_unique<EventFile>(directory_);
  }
  file_->start_session(position.update, [&](const std::string& tag, bool is_own) {
    const bool is_of_this_run = position.update > 0 || is_own;
    return is_of_this_run && !position.repeats(position.update, tag);
  });
  file_->flush();
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
