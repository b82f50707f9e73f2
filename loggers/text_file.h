#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/file_descriptor.h"
#include "core/log.h"
#include "loggers/writer_thread.h"

namespace rondo {

/// A text file that metrics are appended to, line by line. Made with its folders when the first
/// lines are written, so that a run that logs nothing leaves nothing. A thread writes: a slow disk,
/// or a pipe that nobody reads, holds nobody up until 8 MiB are waiting. What cannot be written is
/// kept for a while and tried again; when there is no room for it, it is lost.
class TextFile {
 public:
  TextFile() = default;
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  /// Writes what is left, if it can.
  ~TextFile();

  /// \param log  warned once, when lines come faster than they can be written
  /// \throws IoError  when a file at this path cannot be written
  void set_path(std::filesystem::path path, const TextLog& log = TextLog());

  const std::filesystem::path& path() const { return path_; }

  /// True when nothing was ever appended to the file.
  bool is_empty();

  /// Appends `line` and a newline. It is a line alone, also after one that a crash cut short.
  void append(std::string_view line);

  /// Appends a line that is costly to make, which the thread does. \param bytes  what `make` holds
  void append_later(size_t bytes, std::function<std::string()> make);

  /// \throws IoError  when something could not be written, naming the file, once until something
  ///                  can be written again. Also what a `make` has thrown, whose line is left out
  void check() { writer_.rethrow(); }

  /// Begins to write what was appended, and does not wait. \throws  as `check`
  void start_flush();

  /// Waits until everything is written, a minute at most. \throws  as `check`, and then
  void flush();

  /// Waits until what was appended is written, and says how many lines could not be.
  int64_t lost();

  /// Drops the lines that `is_kept` is false for, and a last one without a newline. A crash at any
  /// instant leaves the old or the new file. Files that are no regular ones, such as a pipe, stay.
  /// \param is_kept  asked for each line in order, without its newline
  /// \throws IoError  the file is then as it was
  void keep_lines(const std::function<bool(std::string_view line)>& is_kept);

  /// Moves what earlier processes wrote to a file beside it, `metrics.1.jsonl` and so on; what was
  /// appended since stays, below `heading`. \throws IoError
  void start_over(std::string_view heading = "");

 private:
  void hand_over();
  bool has_file_to_change();
  int open();
  void take(std::string_view lines);
  int write_pending();
  void tell(int error);

  std::filesystem::path path_;
  std::string gathered_;  // lines that the thread does not have yet

  // The thread's; after `writer_.wait()` also the caller's.
  detail::FileDescriptor file_{-1};
  std::string pending_;
  int64_t lost_ = 0;                    // lines for which there was no room
  bool is_failing_ = false;             // what is pending could not be written; that was told
  std::optional<size_t> size_at_open_;  // what others wrote before

  WriterThread writer_;  // last: it ends before the rest goes
};

}  // namespace rondo
