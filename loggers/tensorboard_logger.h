#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>

#include "callbacks/writes_on_thread.h"
#include "loggers/logger.h"
#include "loggers/writer_thread.h"

namespace rondo {

class EventFile;

/// Writes TensorBoard events: numbers as scalars, tensors, texts, tables, histograms and pictures.
/// A run of a config begins with its config, a text, and what of it shapes the training, as
/// hyper-parameters; a fit ends with the graph of its recorded step. A fit starts a session where
/// it begins, after which readers drop what earlier ones logged beyond. A thread encodes and
/// writes.
class TensorBoardLogger final : public FilteredLogger, public WritesOnThread {
 public:
  struct Options {
    std::filesystem::path summary_dir = "events";  ///< relative to model_dir
    std::optional<Time> log_steps = {};            ///< see LogFilter, also for the next
    std::vector<std::string> exclude = {};
  };

  /// \throws NotSupportedError  where rondo was built without Protobuf
  explicit TensorBoardLogger(const Options& options);
  ~TensorBoardLogger() override;

  /// \throws IoError  when no file can be made in the directory
  void pre_setup(Trainer& trainer) override;
  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) override;
  void on_fit_end(Trainer& trainer, Loop&) override;
  void log(const Metrics& values, int64_t update) override;
  void log_media(const Media& media, int64_t update) override;
  void go_back(const LogPosition& position) override;
  void flush() override;
  void finish_writing() override;
  int64_t lost() override;

 private:
  EventFile& file();
  void start_flush();
  void write(size_t bytes, std::function<void(EventFile&)> add);

  std::filesystem::path directory_;

  // The thread's; after `writer_.wait()` also the caller's. Made at the first value, so that a run
  // that logs nothing leaves none.
  std::unique_ptr<EventFile> file_;

  bool has_graph_ = false;
  bool has_hyperparameters_ = false;
  bool has_written_ = false;  // since the last flush
  WriterThread writer_;       // last: it ends before the rest goes
};

}  // namespace rondo
