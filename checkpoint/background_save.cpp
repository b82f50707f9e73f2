#include "checkpoint/background_save.h"

#include <utility>

#include "core/error.h"
#include "core/stopwatch.h"

namespace rondo {

BackgroundSave::~BackgroundSave() {
  if (writing_.valid()) {
    writing_.wait();
  }
}

void BackgroundSave::begin(NewName name,
                           const StateDict& state,
                           std::function<void(const std::filesystem::path&)> publish,
                           StateCheck check) {
  if (writing_.valid()) {
    throw UsageError("BackgroundSave::begin: the previous save has not been reported");
  }
  snapshot_.take(std::move(name), state);
  publish_ = std::move(publish);
  check_ = std::move(check);
  try {
    writing_ = std::async(std::launch::async, [this] { return write(); });
  } catch (...) {  // no thread to be had, which would let writers of the state wait for ever
    snapshot_.release();
    throw;
  }
}

BackgroundSave::Done BackgroundSave::write() {
  const Stopwatch watch;
  Done done;
  try {
    done.path = snapshot_.write(*files_, check_);
    publish_(done.path);
  } catch (...) {
    done.error = std::current_exception();
  }
  done.seconds = watch.seconds();
  done.waited_s = snapshot_.waited_s();
  return done;
}

BackgroundSave::Done BackgroundSave::report() {
  Done done = writing_.get();
  snapshot_.release();
  return done;
}

std::optional<BackgroundSave::Done> BackgroundSave::poll() {
  if (snapshot_.is_copied()) {
    snapshot_.release();
  }
  const bool is_done =
      writing_.valid() && writing_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  return is_done ? std::optional<Done>(report()) : std::nullopt;
}

std::optional<BackgroundSave::Done> BackgroundSave::wait() {
  return writing_.valid() ? std::optional<Done>(report()) : std::nullopt;
}

}  // namespace rondo
