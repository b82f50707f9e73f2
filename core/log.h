#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace rondo {

enum class LogLevel { Debug, Info, Warning, Error };

/// The text log of a run: a line a message, to standard error and to the files that are added.
/// Metrics never go through it. Any thread may write. Copies are the same log.
class TextLog {
 public:
  /// Writes to standard error from `least` on.
  explicit TextLog(LogLevel least = LogLevel::Info);

  /// A log that hands each message to `sink` and writes nothing; for tests and embedding programs.
  static TextLog to(std::function<void(LogLevel, std::string_view)> sink);

  void debug(std::string_view message) const { write(LogLevel::Debug, message); }

  void info(std::string_view message) const { write(LogLevel::Info, message); }

  void warning(std::string_view message) const { write(LogLevel::Warning, message); }

  void error(std::string_view message) const { write(LogLevel::Error, message); }

  void write(LogLevel level, std::string_view message) const;

  void set_level(LogLevel least) const;

  /// Adds a file, which gets every message from Debug on; replaces one of the same path.
  /// \throws IoError  when the file cannot be opened
  void add_file(const std::filesystem::path& path) const;

  /// Stops writing to the file and closes it; nothing when there is none.
  void remove_file(const std::filesystem::path& path) const;

  void flush() const;

 private:
  struct Sinks;
  std::shared_ptr<Sinks> sinks_;
};

}  // namespace rondo
