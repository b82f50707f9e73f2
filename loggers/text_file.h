#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/file_descriptor.h"

namespace rondo {

/// A text file that metrics are appended to, line by line. Made with its folders when the first
/// lines are written, so that a run that logs nothing leaves nothing. What cannot be written is
/// kept for a while and tried again; when there is no room for it, it is lost.
class TextFile {
 public:
  TextFile() = default;
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  /// Writes what is left, if it can.
  ~TextFile();

  /// \throws IoError  when a file at this path cannot be written
  void set_path(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }

  /// True when nothing was ever appended to the file.
  bool is_empty() const;

  /// Appends `line` and a newline. It is a line alone, also after one that a crash cut short.
  /// \throws IoError  naming the file, once until something can be written again
  void append(std::string_view line);

  /// \throws IoError  as `append`
  void flush();

  /// Drops the lines that `is_kept` is false for, and a last one without a newline. A crash at any
  /// instant leaves the old or the new file. Files that are no regular ones, such as a pipe, stay.
  /// \param is_kept  asked for each line in order, without its newline
  /// \throws IoError  the file is then as it was
  void keep_lines(const std::function<bool(std::string_view line)>& is_kept);

  /// Moves what earlier processes wrote to a file beside it, `metrics.1.jsonl` and so on; what was
  /// appended since stays, below `heading`. \throws IoError
  void start_over(std::string_view heading = "");

 private:
  int open();
  int write_pending();
  void tell(int error);

  std::filesystem::path path_;
  detail::FileDescriptor file_{-1};
  std::string pending_;
  bool is_failing_ = false;             // what is pending could not be written; that was told
  std::optional<size_t> size_at_open_;  // what others wrote before
};

}  // namespace rondo
