#include "core/log.h"

#include <spdlog/details/log_msg_buffer.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/dist_sink.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/standard_error.h"

namespace rondo {

namespace {

// On a terminal a line of progress may stand where a message goes.
constexpr const char* kTerminalPattern = "\r\033[K%H:%M:%S %l: %v";
constexpr const char* kConsolePattern = "%H:%M:%S %l: %v";
constexpr const char* kFilePattern = "%Y-%m-%d %H:%M:%S.%e %l: %v";

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::Debug:
      return spdlog::level::debug;
    case LogLevel::Info:
      return spdlog::level::info;
    case LogLevel::Warning:
      return spdlog::level::warn;
    case LogLevel::Error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

/// Writes lines somewhere. A line that cannot be written is lost there, quietly: a sink that threw
/// would keep the line from the other sinks, and the run is worth more than its log.
class LineSink : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  virtual void write(std::string_view line) = 0;

  void sink_it_(const spdlog::details::log_msg& message) final {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    write(std::string_view(line.data(), line.size()));
  }

  void flush_() override {}
};

class ConsoleSink final : public LineSink {
 protected:
  void write(std::string_view line) override { write_to_stderr(line); }
};

/// A full disk may have room again: what the buffer holds is tried again with each line.
class FileSink final : public LineSink {
 public:
  /// \throws IoError
  explicit FileSink(const std::filesystem::path& path) {
    std::error_code ignored;  // opening tells
    std::filesystem::create_directories(path.parent_path(), ignored);
    out_.open(path, std::ios::app);
    if (!out_) {
      throw IoError("cannot open the log file " + path.string(), errno);
    }
  }

 protected:
  void write(std::string_view line) override {
    out_ << line;
    out_.clear();
  }

  void flush_() override {
    out_.flush();
    out_.clear();
  }

 private:
  std::ofstream out_;
};

/// Keeps what is said before there is a file, for the first one.
class EarlySink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void give_to(spdlog::sinks::sink& file) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const spdlog::details::log_msg& message : kept_) {
      file.log(message);
    }
    kept_.clear();
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    constexpr size_t kMost = 256;  // of a log that never gets a file
    if (kept_.size() < kMost) {
      kept_.emplace_back(message);
    }
  }

  void flush_() override {}

 private:
  std::vector<spdlog::details::log_msg_buffer> kept_;
};

/// Hands each message to a function.
class FunctionSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FunctionSink(std::function<void(LogLevel, std::string_view)> function)
      : function_(std::move(function)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const LogLevel level = message.level >= spdlog::level::err    ? LogLevel::Error
                           : message.level == spdlog::level::warn ? LogLevel::Warning
                           : message.level == spdlog::level::info ? LogLevel::Info
                                                                  : LogLevel::Debug;
    function_(level, std::string_view(message.payload.data(), message.payload.size()));
  }

  void flush_() override {}

 private:
  std::function<void(LogLevel, std::string_view)> function_;
};

}  // namespace

struct TextLog::Sinks {
  explicit Sinks(spdlog::sink_ptr console_sink)
      : console(std::move(console_sink)),
        early(std::make_shared<EarlySink>()),
        all(std::make_shared<spdlog::sinks::dist_sink_mt>()),
        logger("rondo", all) {
    all->add_sink(console);
    all->add_sink(early);
    logger.set_level(spdlog::level::debug);
    logger.flush_on(spdlog::level::warn);
  }

  spdlog::sink_ptr console;
  std::shared_ptr<EarlySink> early;  // null once there was a file
  std::shared_ptr<spdlog::sinks::dist_sink_mt> all;
  spdlog::logger logger;
  std::mutex files_mutex;
  std::map<std::filesystem::path, spdlog::sink_ptr> files;
};

TextLog::TextLog(LogLevel least) {
  sinks_ = std::make_shared<Sinks>(std::make_shared<ConsoleSink>());
  sinks_->console->set_pattern(::isatty(STDERR_FILENO) == 1 ? kTerminalPattern : kConsolePattern);
  set_level(least);
}

TextLog TextLog::to(std::function<void(LogLevel, std::string_view)> sink) {
  TextLog log;
  log.sinks_ = std::make_shared<Sinks>(std::make_shared<FunctionSink>(std::move(sink)));
  return log;
}

void TextLog::write(LogLevel level, std::string_view message) const {
  sinks_->logger.log(level_of(level), spdlog::string_view_t(message.data(), message.size()));
}

void TextLog::set_level(LogLevel least) const {
  sinks_->console->set_level(level_of(least));
}

void TextLog::add_file(const std::filesystem::path& path) const {
  remove_file(path);
  auto file = std::make_shared<FileSink>(path);
  file->set_pattern(kFilePattern);
  const std::lock_guard<std::mutex> lock(sinks_->files_mutex);
  sinks_->files[path] = file;
  if (const std::shared_ptr<EarlySink> early = std::exchange(sinks_->early, nullptr)) {
    sinks_->all->remove_sink(early);
    early->give_to(*file);
  }
  sinks_->all->add_sink(std::move(file));
}

void TextLog::remove_file(const std::filesystem::path& path) const {
  const std::lock_guard<std::mutex> lock(sinks_->files_mutex);
  const auto file = sinks_->files.find(path);
  if (file != sinks_->files.end()) {
    file->second->flush();
    sinks_->all->remove_sink(file->second);
    sinks_->files.erase(file);
  }
}

void TextLog::flush() const {
  sinks_->logger.flush();
}

}  // namespace rondo
