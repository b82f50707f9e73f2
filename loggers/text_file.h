#pragma once

#include <filesystem>
#include <fstream>
#include <string_view>

namespace rondo {

/// A text file that metrics are appended to. Opened at the first line, so that a run that logs
/// nothing leaves nothing.
class TextFile {
 public:
  void set_path(std::filesystem::path path) { path_ = std::move(path); }

  const std::filesystem::path& path() const { return path_; }

  /// Appends `line` and a newline, on a line of its own also behind one that a crash cut short.
  /// \throws IoError  naming the file, once until something can be written again
  void append(std::string_view line);

  /// \throws IoError  as `append`
  void flush();

 private:
  void open();
  void check();

  std::filesystem::path path_;
  std::ofstream out_;
  bool is_failing_ = false;
};

}  // namespace rondo
