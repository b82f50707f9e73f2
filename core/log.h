#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace rondo {

enum class LogLevel { Debug, Info, Warning, Error };

/// The text log of a run: one line per message, to standard error and to added files. Metrics never
/// go through it. Any thread may write. Copies are the same log.
class TextLog {
 public:
  /// Writes messages of level `least` and above to standard error.
  explicit TextLog(LogLevel least = LogLevel::Info);

  /// A log that passes each message to `sink` and writes nothing; for tests and embedding programs.
  static TextLog to(std::function<void(LogLevel, std::string_view)> sink);

  void debug(std::string_view message) const { write(LogLevel::Debug, message); }

  void info(std::string_view message) const { write(LogLevel::Info, message); }

  void warning(std::string_view message) const { write(LogLevel::Warning, message); }

  void error(std::string_view message) const { write(LogLevel::Error, message); }

  void write(LogLevel level, std::string_view message) const;

  void set_level(LogLevel least) const;

  /// Adds a file, which receives every message, Debug included; replaces one with the same path.
  /// The first file also gets the messages before it, of which 256 are kept.
  ///
  /// \throws IoError  when the file cannot be opened
  void add_file(const std::filesystem::path& path) const;

  /// Stops writing to the file and closes it; does nothing when there is none.
  void remove_file(const std::filesystem::path& path) const;

  void flush() const;

 private:
  struct Sinks;
  std::shared_ptr<Sinks> sinks_;
};

}  // namespace rondo
