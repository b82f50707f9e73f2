#include "core/standard_error.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <optional>
#include <utility>

#include "core/no_sigpipe.h"
#include "core/terminal.h"

namespace rondo {

namespace {

struct Terminal {
  std::mutex mutex;
  std::vector<std::string> shown;  // below the text; the cursor stands behind the last of them
};

/// Never destroyed: something may be written at the very end of the process.
Terminal& terminal() {
  static Terminal* const one = new Terminal;
  return *one;
}

/// Rows of the terminal that the lines take now. A window that was made narrower has wrapped them.
int rows_of(const std::vector<std::string>& shown) {
  const std::optional<int> columns = terminal_columns(STDERR_FILENO);
  int rows = 0;
  for (const std::string& line : shown) {
    rows += columns ? std::max(1, (static_cast<int>(width_of(line)) + *columns - 1) / *columns) : 1;
  }
  return rows;
}

/// Takes away what is shown and puts the cursor to where it began.
std::string erasing(const std::vector<std::string>& shown) {
  if (shown.empty()) {
    return "";
  }
  std::string text = "\r";
  for (int row = 1; row < rows_of(shown); ++row) {
    text += "\x1b[A";
  }
  return text + "\x1b[J";
}

std::string showing(const std::vector<std::string>& shown) {
  std::string text;
  for (size_t i = 0; i < shown.size(); ++i) {
    text += (i == 0 ? "" : "\n") + shown[i];
  }
  return text;
}

void write(const std::string& text) {
  const NoSigpipe no_signal;
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

void write_to_stderr(std::string_view text) {
  Terminal& all = terminal();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const bool is_open = !all.shown.empty() && !text.empty() && text.back() != '\n';
  write(erasing(all.shown) + std::string(text) + (is_open ? "\n" : "") + showing(all.shown));
}

void show_below_stderr(std::vector<std::string> lines) {
  Terminal& all = terminal();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const std::string before = erasing(all.shown);
  all.shown = std::move(lines);
  write(before + showing(all.shown));
}

}  // namespace rondo
