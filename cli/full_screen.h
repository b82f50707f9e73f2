#pragma once

#include <termios.h>

#include <string>
#include <vector>

#include "core/file_descriptor.h"

namespace rondo {

/// Takes over the terminal on standard input and output: another screen without a cursor, keys as
/// they are pressed. Gives it back when destroyed. A guard process gives it back when this one dies
/// in any other way, killed too.
class FullScreen {
 public:
  /// Whether standard input and output are a terminal that can be taken over.
  static bool is_possible();

  FullScreen();
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;
  ~FullScreen();

  /// Writes the lines from the top; what stands there goes.
  void draw(const std::vector<std::string>& lines) const;

  /// What was typed within so many milliseconds; "" for nothing.
  /// \return false when the terminal is gone
  bool read_keys(int milliseconds, std::string& keys) const;

  static int columns();
  static int rows();

 private:
  void start_guard();

  termios before_ = {};
  detail::FileDescriptor guard_{-1};  // closed by our death; a byte before that says all is well
  pid_t guard_process_ = -1;
};

}  // namespace rondo
