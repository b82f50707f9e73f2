#include "loggers/tensorboard_logger.h"

#include <utility>
#include <variant>

#include "core/registry.h"
#include "core/writable_path.h"
#include "loggers/event_file.h"
#include "loggers/held_bytes.h"
#include "loggers/register.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

void add_values(EventFile& file, const Metrics& values, int64_t update) {
  std::vector<std::pair<std::string, float>> scalars;
  for (const Metrics::Item& item : values.items()) {
    if (const auto* const tensor = std::get_if<at::Tensor>(&item.second)) {
      file.add_tensor(update, item.first, *tensor);
    } else if (const auto* const text = std::get_if<std::string>(&item.second)) {
      file.add_media(update, {item.first, *text});
    } else if (const auto number = values.number(item.first)) {
      scalars.emplace_back(item.first, static_cast<float>(*number));
    }
  }
  if (!scalars.empty()) {
    file.add_scalars(update, scalars);
  }
}

}  // namespace

TensorBoardLogger::TensorBoardLogger(const Options& options)
    : FilteredLogger({options.log_steps, options.exclude}), directory_(options.summary_dir) {
  require_event_files();
}

TensorBoardLogger::~TensorBoardLogger() = default;

void TensorBoardLogger::pre_setup(Trainer& trainer) {
  directory_ = trainer.options().model_dir / directory_;
  require_writable_folder(directory_);
  writer_.warn_of_waits(trainer.log(), directory_.string());
}

EventFile& TensorBoardLogger::file() {
  if (!file_) {
    file_ = std::make_unique<EventFile>(directory_);
  }
  return *file_;
}

void TensorBoardLogger::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) {
  const std::string& config = trainer.options().config_text;
  if (!config.empty() && filter().takes("config")) {
    log_media({"config", "```toml\n" + config + "```\n"}, trainer.state().global_step());
  }
}

/// Calls `add` on the thread. \param bytes  what it holds
void TensorBoardLogger::write(size_t bytes, std::function<void(EventFile&)> add) {
  has_written_ = true;
  writer_.push(bytes, [this, add = std::move(add)] { add(file()); });
  writer_.rethrow();
}

void TensorBoardLogger::log(const Metrics& values, int64_t update) {
  write(held_bytes(values),
        [values, update](EventFile& file) { add_values(file, values, update); });
}

void TensorBoardLogger::log_media(const Media& media, int64_t update) {
  write(held_bytes(media), [media, update](EventFile& file) { file.add_media(update, media); });
}

void TensorBoardLogger::go_back(const LogPosition& position) {
  writer_.wait();
  const size_t own = file_ ? 1 : 0;
  if (position.update == 0 ? event_files(directory_).size() == own
                           : event_files(directory_).empty()) {
    return;  // nothing to go back from
  }
  file().start_session(position.update, [&](const std::string& tag, bool is_own) {
    const bool is_of_this_run = position.update > 0 || is_own;
    return is_of_this_run && !position.repeats(position.update, tag);
  });
  file_->flush();
}

void TensorBoardLogger::start_flush() {
  if (std::exchange(has_written_, false)) {
    writer_.push(0, [this] { file().flush(); });
  }
}

void TensorBoardLogger::flush() {
  start_flush();
  writer_.rethrow();
}

void TensorBoardLogger::finish_writing() {
  start_flush();
  writer_.wait();
  writer_.rethrow();
}

int64_t TensorBoardLogger::lost() {
  start_flush();
  writer_.wait();
  return file_ ? file_->lost() : 0;
}

void register_tensorboard_logger(Registry<Logger>& registry) {
  add_filter_keys(
      registry
          .add<TensorBoardLogger>(
              "TensorBoardLogger",
              "Writes TensorBoard events: numbers, tensors, texts, histograms, pictures.")
          .key("summary_dir",
               &TensorBoardLogger::Options::summary_dir,
               "directory, relative to model_dir"));
}

}  // namespace rondo
