#include "callbacks/core/download_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "core/terminal.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

constexpr int kBar = 20;  // characters of the bar
constexpr int kSpace = 3;

/// The last line of the terminal, which is drawn again when it would read otherwise. It ends with a
/// download, and with the store.
class TerminalLine {
 public:
  TerminalLine() = default;
  TerminalLine(const TerminalLine&) = delete;
  TerminalLine& operator=(const TerminalLine&) = delete;

  ~TerminalLine() { end(); }

  void show(std::string line) {
    if (line != shown_) {
      std::fprintf(stderr, "\r\033[K%s", line.c_str());
      shown_ = std::move(line);
    }
  }

  void end() {
    if (!shown_.empty()) {
      std::fputs("\n", stderr);
      shown_.clear();
    }
  }

 private:
  std::string shown_;
};

DownloadProgress on_terminal() {
  return [last_line = std::make_shared<TerminalLine>()](
             const std::string& address, int64_t bytes, std::optional<int64_t> of_bytes) {
    if (const std::optional<int> columns = terminal_columns(STDERR_FILENO)) {
      last_line->show(download_line(address, bytes, of_bytes, *columns));
    }
    if (of_bytes && bytes >= *of_bytes) {
      last_line->end();
    }
  };
}

}  // namespace

std::string download_line(const std::string& address,
                          int64_t bytes,
                          std::optional<int64_t> of_bytes,
                          int columns) {
  constexpr double kMiB = 1 << 20;
  const bool is_known = of_bytes && *of_bytes > 0;
  const double share =
      is_known ? std::min(static_cast<double>(bytes) / static_cast<double>(*of_bytes), 1.0) : 0.0;
  std::string text =
      is_known
          ? fmt::format("downloading {} {:3.0f} % of {:.1f} MiB",
                        address,
                        100.0 * share,
                        static_cast<double>(*of_bytes) / kMiB)
          : fmt::format("downloading {} {:.1f} MiB", address, static_cast<double>(bytes) / kMiB);
  const auto size = static_cast<int>(text.size());
  if (is_known && size + kBar + kSpace < columns) {
    const auto full = static_cast<size_t>(share * kBar);
    text += fmt::format(" [{}{}]", std::string(full, '='), std::string(kBar - full, ' '));
  }
  return text.substr(0, static_cast<size_t>(std::max(columns - 1, 0)));
}

OpenRemoteStore with_progress(const Trainer& trainer, OpenRemoteStore open) {
  const std::string& level = trainer.options().logging.log_level;
  const bool is_quiet = level == "warning" || level == "error" || !trainer.state().writes();
  if (is_quiet || !terminal_columns(STDERR_FILENO)) {
    return open;
  }
  return [open = std::move(open)](const std::string& address, RemoteSettings settings) {
    settings.on_download = on_terminal();
    return open(address, std::move(settings));
  };
}

}  // namespace rondo
