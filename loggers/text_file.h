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

  /// Appends `line` and a newline.
  /// \throws IoError  naming the file
  void append(std::string_view line);

  /// \throws IoError  when what was appended cannot be written
  void flush();

 private:
  std::filesystem::path path_;
  std::ofstream out_;
};

}  // namespace rondo
