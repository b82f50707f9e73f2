#include "loggers/writer_thread.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"

namespace rondo {

namespace {

constexpr size_t kMostBytes = size_t{8} << 20;
constexpr std::chrono::seconds kSilent(5);  // how long a wait for the last task stays untold

}  // namespace

WriterThread::~WriterThread() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void WriterThread::warn_of_waits(TextLog log, std::string file) {
  log_ = std::move(log);
  file_ = std::move(file);
}

void WriterThread::push(size_t bytes, std::function<void()> task) {
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { work(); });  // may throw: nothing is queued yet
  }
  std::unique_lock lock(mutex_);
  const auto has_room = [&] { return queue_.empty() || bytes_ + bytes <= kMostBytes; };
  if (!has_room()) {
    warn(lock);
  }
  changed_.wait(lock, has_room);
  queue_.push_back({bytes, std::move(task)});
  bytes_ += bytes;
  lock.unlock();
  changed_.notify_all();
}

void WriterThread::wait() {
  while (!wait_at_most(std::chrono::hours(1))) {
  }
}

bool WriterThread::wait_at_most(std::chrono::seconds limit) {
  std::unique_lock lock(mutex_);
  const auto is_done = [this] { return queue_.empty(); };
  if (changed_.wait_for(lock, kSilent, is_done)) {
    return true;
  }
  warn(lock);
  return changed_.wait_for(lock, limit - kSilent, is_done);
}

void WriterThread::warn(std::unique_lock<std::mutex>& lock) {
  if (const std::optional<TextLog> log = std::exchange(log_, std::nullopt)) {
    lock.unlock();
    log->warning(
        fmt::format("{} takes values more slowly than they come; training waits for it "
                    "from here on",
                    file_));
    lock.lock();
  }
}

void WriterThread::rethrow() {
  std::unique_lock lock(mutex_);
  if (const std::exception_ptr failure = std::exchange(failure_, nullptr)) {
    lock.unlock();
    std::rethrow_exception(failure);
  }
}

void WriterThread::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_over_ || !queue_.empty(); });
    if (queue_.empty()) {
      return;
    }
    Task& task = queue_.front();  // stays in its place while others are queued
    lock.unlock();
    std::exception_ptr failure;
    try {
      task.run();
    } catch (const IoError&) {
      failure = std::current_exception();
    } catch (...) {
      const std::string what = describe(std::current_exception());
      failure = std::make_exception_ptr(
          IoError("cannot log" + (file_.empty() ? "" : " to " + file_) + ": " + what, 0));
    }
    task.run = nullptr;  // what it holds goes before anybody is told
    lock.lock();
    bytes_ -= task.bytes;
    queue_.pop_front();
    if (!failure_) {
      failure_ = std::move(failure);
    }
    changed_.notify_all();
  }
}

}  // namespace rondo
