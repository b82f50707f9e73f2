// `rondo watch`, and `rondo fit --ui`, which watches a run that it starts.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <sstream>
#include <thread>

#include "cli/full_screen.h"
#include "cli/record_commands.h"
#include "cli/signal_handlers.h"
#include "core/error.h"
#include "core/file_descriptor.h"
#include "core/host_name.h"
#include "record/config_keys.h"
#include "record/dashboard.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPoll = 200;  // milliseconds

/// The last lines of a text file, at most 64 KiB of them.
std::vector<std::string> last_lines(std::istream& file) {
  constexpr std::streamoff kMost = 64 << 10;
  file.seekg(0, std::ios::end);
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(size - kMost, 0));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> last_lines(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return file ? last_lines(file) : std::vector<std::string>{};
}

/// Asks the process of a run to stop: it saves after the first signal, a second one ends it.
/// \return what went wrong, or ""
std::string stop(const RunRecord& run, DashboardRequest request) {
  if (run.status != RunStatus::Running) {
    return "the run has ended";
  }
  if (run.process <= 0 || run.host != host_name()) {
    return fmt::format("the run is a process of {}: stop it there", run.host);
  }
  const auto process = static_cast<pid_t>(run.process);
  if (::kill(process, SIGTERM) != 0) {
    return fmt::format("the run cannot be stopped: {}", std::strerror(errno));
  }
  if (request == DashboardRequest::StopNow) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ::kill(process, SIGTERM);
  }
  return "";
}

/// Shows a run until the user leaves or there is nothing to wait for.
class Watcher {
 public:
  /// \param directory  of the run, which may not be there yet
  /// \param log        its text log
  Watcher(fs::path directory, fs::path log)
      : directory_(std::move(directory)), log_(std::move(log)) {
    run_.name = directory_.filename().string();
    run_.directory = directory_;
    run_.status = RunStatus::Running;  // until there is a record
  }

  void watch(const std::function<bool()>& is_over) {
    const FullScreen screen;
    std::string keys;
    while (!is_over()) {
      refresh();
      screen.draw(dashboard_lines(run_,
                                  lines_,
                                  view_,
                                  FullScreen::columns(),
                                  FullScreen::rows(),
                                  std::getenv("NO_COLOR") == nullptr));
      if (!screen.read_keys(kPoll, keys) || !take(keys)) {
        return;
      }
    }
  }

 private:
  /// A long record is not read more often than costs a twentieth of the time.
  void refresh() {
    const Clock::time_point now = Clock::now();
    if (now < next_) {
      return;
    }
    std::error_code error;
    if (fs::is_regular_file(directory_ / kRecordFile, error)) {
      try {
        run_ = read_record(directory_);
      } catch (const DataError& unreadable) {
        run_.reason = unreadable.what();
      }
    }
    run_.reason = message_.empty() ? run_.reason : message_;
    lines_ = last_lines(log_);
    next_ =
        now + std::max<Clock::duration>(std::chrono::milliseconds(400), 20 * (Clock::now() - now));
  }

  /// \return false when the user leaves
  bool take(std::string_view keys) {
    while (!keys.empty()) {
      const DashboardRequest request = press(view_, take_key(keys));
      if (request == DashboardRequest::Quit) {
        return false;
      }
      if (request != DashboardRequest::None) {
        message_ = stop(run_, request);
        next_ = {};
      }
    }
    return true;
  }

  fs::path directory_;
  fs::path log_;
  RunRecord run_;
  std::vector<std::string> lines_;
  std::string message_;  // what went wrong with a stop
  DashboardView view_;
  Clock::time_point next_;
};

void require_terminal(const char* what) {
  if (!FullScreen::is_possible()) {
    throw UsageError(fmt::format(
        "{} needs a terminal on standard input and output, with TERM set; `rondo runs` and `rondo "
        "plot` need none",
        what));
  }
}

/// The directory of the run that a command line starts; "" where it is not known.
fs::path directory_of(const CommandLine& line) {
  if (!line.model_dir.empty()) {
    return line.model_dir;
  }
  const std::string key = "init.model_dir";
  const auto is_meant = [&](const std::string& name) {
    return name.size() >= key.size() &&
           name.compare(name.size() - key.size(), key.size(), key) == 0;
  };
  std::string found;
  std::ifstream file(line.config, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  for (const auto& [name, value] : config_keys(text.str())) {
    found = is_meant(name) ? value : found;
  }
  for (const std::string& override_text : line.overrides) {
    const size_t equals = override_text.find('=');
    found = is_meant(override_text.substr(0, equals)) ? override_text.substr(equals + 1) : found;
  }
  if (found.size() > 1 && found.front() == '"' && found.back() == '"') {
    found = found.substr(1, found.size() - 2);
  }
  return found;
}

fs::path make_log() {
  std::string path = (fs::temp_directory_path() / "rondo-XXXXXX").string();
  const detail::FileDescriptor file(::mkstemp(path.data()));
  if (file.get() < 0) {
    throw DataError(fmt::format(
        "{}: cannot make a file for the log of the run: {}", path, std::strerror(errno)));
  }
  return path;
}

/// Starts the program with the arguments but `--ui`; what it prints goes to the file.
pid_t start(const std::string& program,
            char** arguments,
            const fs::path& log,
            const HoldSignals& held) {
  std::vector<char*> kept;
  for (; *arguments != nullptr; ++arguments) {
    if (std::strcmp(*arguments, "--ui") != 0) {
      kept.push_back(*arguments);
    }
  }
  kept.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const int out = ::open(log.c_str(), O_WRONLY | O_APPEND);
    const int in = ::open("/dev/null", O_RDONLY);
    ::dup2(in, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    held.release();
    ::execv(program.c_str(), kept.data());
    ::_exit(127);
  }
  if (child < 0) {
    throw DataError(fmt::format("{}: cannot be started: {}", program, std::strerror(errno)));
  }
  return child;
}

volatile pid_t started = 0;  // the run, for a signal handler

/// Passes a SIGTERM on to the run, which stops and saves.
void pass_on(int signal) {
  ::kill(started, signal);
}

int exit_code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int watch_fit(const CommandLine& line, const std::string& program, char** arguments) {
  require_terminal("--ui");
  const fs::path log = make_log();
  const HoldSignals until_it_is_known({SIGTERM});
  const pid_t child = start(program, arguments, log, until_it_is_known);
  started = child;
  std::signal(SIGTERM, pass_on);
  until_it_is_known.release();
  int status = 0;
  bool is_over = false;
  Watcher(directory_of(line), log).watch([&] {
    if (!is_over && ::waitpid(child, &status, WNOHANG) == child) {
      is_over = true;
      std::signal(SIGTERM, SIG_DFL);
    }
    return is_over;
  });
  if (!is_over) {
    std::cerr << "the run continues; Ctrl-C stops and saves it" << std::endl;
    std::signal(SIGINT, SIG_IGN);  // the run gets it too
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  const int code = exit_code_of(status);
  const std::vector<std::string> lines = last_lines(log);
  std::error_code ignored;
  fs::remove(log, ignored);
  const size_t shown = std::min<size_t>(lines.size(), code == 0 ? 1 : 20);
  for (size_t i = lines.size() - shown; i < lines.size(); ++i) {
    (line.json ? std::cout : std::cerr) << lines[i] << "\n";
  }
  return code;
}

}  // namespace

int watch(const CommandLine& line) {
  read_record(line.target);  // what is wrong with it is told before the screen changes
  require_terminal("rondo watch");
  Watcher(line.target, fs::path(line.target) / "latest_run.log").watch([] { return false; });
  return 0;
}

int fit_with_dashboard(const CommandLine& line, const std::string& program, char** arguments) {
  try {
    return watch_fit(line, program, arguments);
  } catch (const UsageError& error) {
    std::cerr << "rondo: " << error.what() << "\n";
    return 2;
  } catch (const Error& error) {
    std::cerr << "rondo: " << error.what() << "\n";
    return 1;
  }
}

}  // namespace rondo
