#include "callbacks/core/autorestart_callback.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <vector>

#include "core/error.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// One start of the run, and how it went on.
struct Attempt {
  int64_t start = 0;             // update at which it began
  std::string end = "no trace";  // the line that it left at its end
  bool has_failed = true;        // a process that just died left no line
};

/// The attempts in a file of lines `start 120`, `end 500`, `failed 300 the cause`.
std::vector<Attempt> read_attempts(const std::filesystem::path& path) {
  std::vector<Attempt> attempts;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string event;
    int64_t update = 0;
    words >> event >> update;
    if (event == "start") {
      attempts.push_back({update});
    } else if (!attempts.empty()) {
      attempts.back().end = line;
      attempts.back().has_failed = event != "end";
    }
  }
  return attempts;
}

/// Failed attempts in a row, up to the newest one, after each of which the next began no further.
int64_t fruitless(const std::vector<Attempt>& attempts, int64_t now) {
  int64_t count = 0;
  for (size_t i = attempts.size(); i-- > 0 && attempts[i].has_failed && attempts[i].start >= now;) {
    ++count;
  }
  return count;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace

void AutorestartCallback::pre_setup(Trainer& trainer) {
  const auto& restarts = trainer.options().autorestart.max_num_restarts;
  max_restarts_ = restarts.value_or(0);
  detail::require(max_restarts_ >= 0, "autorestart.max_num_restarts", ">= 0", max_restarts_);
  history_ = trainer.options().model_dir / "restarts.log";
}

void AutorestartCallback::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) {
  if (max_restarts_ == 0 || !trainer.state().writes()) {
    return;
  }
  const int64_t now = trainer.state().global_step();
  const std::vector<Attempt> attempts = read_attempts(history_);
  // The first attempt is no restart yet.
  if (const int64_t failures = fruitless(attempts, now); failures > max_restarts_) {
    throw Error(fmt::format(
        "{} attempts in a row began at update {} and failed (the last one: {}); find the cause, "
        "save more often (checkpoint.steps), or start from another checkpoint, and then delete {}",
        failures,
        now,
        attempts.back().end,
        history_.string()));
  }
  add_line(fmt::format("start {}", now));
  is_running_ = true;
}

void AutorestartCallback::on_fit_end(Trainer& trainer, Loop&) {
  if (is_running_) {
    end_attempt(trainer, fmt::format("end {}", trainer.state().global_step()));
  }
}

void AutorestartCallback::on_fit_exception(Trainer& trainer, std::exception_ptr error) {
  if (is_running_) {
    end_attempt(
        trainer,
        fmt::format("failed {} {}", trainer.state().global_step(), first_line(describe(error))));
  }
}

void AutorestartCallback::end_attempt(const Trainer& trainer, const std::string& line) {
  is_running_ = false;
  try {
    add_line(line);
  } catch (const IoError& error) {
    trainer.log().warning(error.what());  // of a run that is over: it passes for one that died
  }
}

void AutorestartCallback::add_line(const std::string& line) const {
  std::ofstream file(history_, std::ios::app);
  file << line << std::endl;
  if (!file) {
    throw IoError(fmt::format("cannot write {}", history_.string()), errno);
  }
}

}  // namespace rondo
