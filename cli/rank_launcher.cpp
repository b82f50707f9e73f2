#include "cli/rank_launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iostream>
#include <thread>
#include <vector>

#include "cli/signal_handlers.h"
#include "core/file_descriptor.h"
#include "distributed/free_port.h"
#include "distributed/heartbeat.h"
#include "distributed/launch_environment.h"

namespace rondo {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kUsageError = 2;
constexpr int kCannotStart = 127;
constexpr int64_t kMostRanks = 4096;
constexpr std::chrono::milliseconds kPoll(10);
constexpr std::chrono::seconds kToFindOut(2);
constexpr std::chrono::seconds kToStop(30);
constexpr size_t kShownLines = 20;

constexpr std::initializer_list<int> kHandedOn = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

// A handler reaches nothing but these, one for each signal above.
std::atomic<bool> has_come[kHandedOn.size()];

void note(int signal) {
  const auto* found = std::find(std::begin(kHandedOn), std::end(kHandedOn), signal);
  has_come[found - std::begin(kHandedOn)] = true;
}

/// What is wrong with the numbers of ranks and hosts; "" when they fit.
std::string fault_of(const CommandLine& line) {
  if (line.files.empty()) {
    return "expected a command, such as `fit run.toml`";
  }
  if (line.ranks > kMostRanks / line.nodes) {
    return fmt::format("at most {} ranks are possible, on all hosts together", kMostRanks);
  }
  if (line.nodes == 1) {
    return line.node_rank > 0 ? "--node-rank is for several hosts: give --nodes" : "";
  }
  if (line.node_rank < 0 || line.node_rank >= line.nodes) {
    return fmt::format("{} hosts need --node-rank, the number of this one from 0 to {}",
                       line.nodes,
                       line.nodes - 1);
  }
  if (line.master_addr.empty() || line.master_port == 0) {
    return "several hosts need --master-addr and --master-port, the same on all: host 0 and a free "
           "port of it";
  }
  return "";
}

LaunchEnvironment environment_of(const CommandLine& line,
                                 int64_t ranks,
                                 int64_t local_rank,
                                 int port) {
  LaunchEnvironment found;
  const int64_t node = std::max<int64_t>(line.node_rank, 0);
  found.rank = static_cast<int>(node * ranks + local_rank);
  found.world_size = static_cast<int>(line.nodes * ranks);
  found.local_rank = static_cast<int>(local_rank);
  found.local_world_size = static_cast<int>(ranks);
  found.node_rank = static_cast<int>(node);
  found.master_addr = line.master_addr.empty() ? "127.0.0.1" : line.master_addr;
  found.master_port = port;
  found.launcher = LaunchEnvironment::kRondoLaunch;
  found.first_world_size = static_cast<int>(line.nodes * line.ranks);
  return found;
}

/// How a process ended, as an exit code of a shell.
int code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string told(int status) {
  return WIFSIGNALED(status) ? fmt::format("died of signal {}", WTERMSIG(status))
                             : fmt::format("ended with code {}", WEXITSTATUS(status));
}

/// Whether a rank ended as runs do that a signal asks to stop: the others do the same.
bool saved_and_stopped(int status) {
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  return code == 128 + SIGHUP || code == 128 + SIGINT || code == 128 + SIGTERM;
}

/// The processes of one attempt.
class Ranks {
 public:
  /// \param is_restart  logs go on behind those of the attempt that failed
  Ranks(const CommandLine& line, const std::string& program, const fs::path& logs, bool is_restart)
      : line_(line), program_(program), logs_(logs), is_restart_(is_restart) {}

  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  ~Ranks() { send(SIGKILL); }

  void start(int64_t count) {
    const int port = line_.master_port != 0 ? static_cast<int>(line_.master_port) : free_port();
    for (int64_t i = 0; i < count; ++i) {
      const LaunchEnvironment environment = environment_of(line_, count, i, port);
      Rank rank;
      rank.number = environment.rank;
      if (environment.rank != 0) {
        rank.log = logs_ / fmt::format("rank{}.log", environment.rank);
      }
      const HoldSignals until_it_can_hear(kHandedOn);
      rank.process = ::fork();
      if (rank.process == 0) {
        become(environment, rank.log, until_it_can_hear);
      }
      ranks_.push_back(rank);
      if (rank.process < 0) {
        std::cerr << fmt::format("cannot start rank {}: {}\n", rank.number, std::strerror(errno));
        failed(ranks_.back(), kCannotStart);
        break;
      }
    }
  }

  /// Waits for all of them. \return the code of the first that failed; 0 when none did
  int wait() {
    while (is_running()) {
      hand_on_signals();
      int status = 0;
      const pid_t ended = ::waitpid(-1, &status, WNOHANG);
      if (ended > 0) {
        note_end(ended, status);
      } else {
        note_hang();
        end_others();
        std::this_thread::sleep_for(kPoll);
      }
    }
    return code_;
  }

  bool was_stopped() const { return was_stopped_; }

  /// Whether the first failure may not come again: a rank died, or the run failed.
  bool can_try_again() const { return code_ == 1 || code_ > 128; }

 private:
  struct Rank {
    int number = 0;
    pid_t process = -1;
    fs::path log;
  };

  [[noreturn]] void become(const LaunchEnvironment& environment,
                           const fs::path& log,
                           const HoldSignals& held) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setpgid(0, 0);  // a Ctrl-C of the terminal comes through the launcher, once
    auto variables = variables_of(environment);
    variables.push_back(heartbeat_.variable());
    for (const auto& [name, value] : variables) {
      ::setenv(name.c_str(), value.c_str(), 1);
    }
    if (!log.empty()) {
      const int file = ::open(
          log.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (is_restart_ ? O_APPEND : O_TRUNC), 0644);
      ::dup2(file, STDOUT_FILENO);
      ::dup2(file, STDERR_FILENO);
      ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    }
    for (const int signal : kHandedOn) {
      std::signal(signal, signal == SIGUSR1 ? SIG_IGN : SIG_DFL);
    }
    held.release();
    std::vector<std::string> words = line_.files;
    const bool is_of_rondo = is_command(words.front());
    if (is_of_rondo) {
      words.insert(words.begin(), "rondo");
    }
    std::vector<char*> arguments;
    for (std::string& word : words) {
      arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    const char* const program = is_of_rondo ? program_.c_str() : arguments.front();
    ::execvp(program, arguments.data());
    std::cerr << fmt::format("cannot run {}: {}\n", program, std::strerror(errno)) << std::flush;
    ::_exit(kCannotStart);
  }

  bool is_running() const {
    return std::any_of(
        ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.process > 0; });
  }

  void note_end(pid_t process, int status) {
    const auto found = std::find_if(
        ranks_.begin(), ranks_.end(), [&](const Rank& rank) { return rank.process == process; });
    if (found == ranks_.end()) {
      return;
    }
    found->process = -1;
    was_stopped_ = was_stopped_ || saved_and_stopped(status);
    if (code_of(status) != 0 && code_ == 0) {
      std::cerr << fmt::format("rank {} {}\n", found->number, told(status));
      failed(*found, code_of(status));
    }
  }

  void failed(const Rank& rank, int code) {
    code_ = code;
    first_failure_ = Clock::now();
    if (!rank.log.empty() && !was_stopped_) {
      show(rank);
    }
  }

  /// Starting, and the first batch, take as long as they take.
  void note_hang() {
    const uint64_t beats = heartbeat_.count();
    const auto now = Clock::now();
    if (beats != seen_beats_) {
      seen_beats_ = beats;
      newest_beat_ = now;
    }
    const std::chrono::seconds limit(line_.hang_timeout);
    if (limit.count() > 0 && beats > 0 && code_ == 0 && now - newest_beat_ > limit) {
      std::cerr << fmt::format("no rank has begun a batch for {} s: they hang; logs are in {}\n",
                               line_.hang_timeout,
                               logs_.string());
      code_ = 1;
      send(SIGKILL);
    }
  }

  /// The end of its log, and where it is.
  static void show(const Rank& rank) {
    std::ifstream file(rank.log);
    std::deque<std::string> lines;
    for (std::string line; std::getline(file, line);) {
      lines.push_back(line);
      if (lines.size() > kShownLines) {
        lines.pop_front();
      }
    }
    std::cerr << fmt::format("the log of rank {}, {}, ends with\n", rank.number, rank.log.string());
    for (const std::string& line : lines) {
      std::cerr << "  " << line << "\n";
    }
    std::cerr << std::flush;
  }

  /// A run that was asked to stop saves first, and takes its time.
  void end_others() {
    if (code_ == 0 || was_stopped_) {
      return;
    }
    const auto since = Clock::now() - first_failure_;
    const int wanted = since > kToFindOut + kToStop ? SIGKILL : since > kToFindOut ? SIGTERM : 0;
    if (wanted != 0 && wanted != sent_) {
      sent_ = wanted;
      send(wanted);
      send(SIGCONT);  // one that is frozen would not hear it
    }
  }

  void hand_on_signals() {
    size_t i = 0;
    for (const int signal : kHandedOn) {
      if (has_come[i++].exchange(false)) {
        was_stopped_ = was_stopped_ || signal != SIGUSR1;
        send(signal);
      }
    }
  }

  /// To the ranks, and to what they started.
  void send(int signal) const {
    for (const Rank& rank : ranks_) {
      if (rank.process > 0 && ::kill(-rank.process, signal) != 0) {
        ::kill(rank.process, signal);  // it has no group yet
      }
    }
  }

  const CommandLine& line_;
  const std::string& program_;
  const fs::path& logs_;
  bool is_restart_;
  std::vector<Rank> ranks_;
  int code_ = 0;
  Clock::time_point first_failure_ = {};  // when code_ is not 0
  Heartbeat heartbeat_;
  uint64_t seen_beats_ = 0;
  Clock::time_point newest_beat_ = {};  // when seen_beats_ is not 0
  int sent_ = 0;
  bool was_stopped_ = false;
};

/// A run that fails again with as many ranks is tried with half of them.
int64_t ranks_of_attempt(const CommandLine& line, int64_t attempt) {
  int64_t ranks = line.ranks;
  const int64_t least = line.min_ranks == 0 ? ranks : line.min_ranks;
  for (int64_t i = 1; i < attempt && ranks / 2 >= least; ++i) {
    ranks /= 2;
  }
  return ranks;
}

int run_attempts(const CommandLine& line, const std::string& program, const fs::path& logs) {
  for (int64_t attempt = 0;; ++attempt) {
    const int64_t count = ranks_of_attempt(line, attempt);
    Ranks ranks(line, program, logs, attempt > 0);
    ranks.start(count);
    const int code = ranks.wait();
    if (code == 0 || ranks.was_stopped() || !ranks.can_try_again() ||
        attempt >= line.max_restarts) {
      return code;
    }
    std::cerr << fmt::format("starting {} ranks again (restart {} of {})\n",
                             ranks_of_attempt(line, attempt + 1),
                             attempt + 1,
                             line.max_restarts);
  }
}

fs::path new_directory() {
  std::string path = (fs::temp_directory_path() / "rondo_ranks_XXXXXX").string();
  return ::mkdtemp(path.data()) == nullptr ? fs::path() : fs::path(path);
}

}  // namespace

int launch_ranks(const CommandLine& line, const std::string& program) {
  if (const std::string fault = fault_of(line); !fault.empty()) {
    std::cerr << "rondo launch: " << fault << "\nSee `rondo launch --help`.\n";
    return kUsageError;
  }
  std::error_code error;
  const bool is_asked_for = !line.log_dir.empty();
  const fs::path logs = is_asked_for ? fs::path(line.log_dir) : new_directory();
  fs::create_directories(logs, error);
  if (error || logs.empty()) {
    std::cerr << fmt::format("rondo launch: cannot make the directory of the ranks' logs, {}\n",
                             logs.string());
    return 1;
  }
  SignalHandlers handed_on;
  handed_on.add(kHandedOn, note);
  const int code = run_attempts(line, program, logs);
  if (code == 0 && !is_asked_for) {
    fs::remove_all(logs, error);
  }
  return code;
}

}  // namespace rondo
