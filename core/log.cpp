#include "core/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/dist_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <mutex>

#include "core/error.h"

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
        all(std::make_shared<spdlog::sinks::dist_sink_mt>()),
        logger("rondo", all) {
    all->add_sink(console);
    logger.set_level(spdlog::level::debug);
    logger.flush_on(spdlog::level::warn);
  }

  spdlog::sink_ptr console;
  std::shared_ptr<spdlog::sinks::dist_sink_mt> all;
  spdlog::logger logger;
  std::mutex files_mutex;
  std::map<std::filesystem::path, spdlog::sink_ptr> files;
};

TextLog::TextLog(LogLevel least) {
  auto console = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  sinks_ = std::make_shared<Sinks>(std::move(console));
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
  try {
    auto file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path.string());
    file->set_pattern(kFilePattern);
    const std::lock_guard<std::mutex> lock(sinks_->files_mutex);
    sinks_->files[path] = file;
    sinks_->all->add_sink(std::move(file));
  } catch (const spdlog::spdlog_ex& error) {
    throw IoError(std::string("cannot open the log file: ") + error.what(), 0);
  }
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
