#include "callbacks/builtin/message_queue.h"

#include <exception>
#include <utility>

#include "core/error.h"

namespace rondo {

MessageQueue::MessageQueue(std::function<void(const std::string& text)> send)
    : send_(std::move(send)) {}

MessageQueue::~MessageQueue() {
  {
    const std::lock_guard lock(mutex_);
    *gives_up_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void MessageQueue::push(std::string text) {
  constexpr size_t kMostWaiting = 100;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(text));
    if (waiting_.size() > kMostWaiting) {
      waiting_.pop_front();
      failures_.emplace_back("too many messages are waiting; the oldest was dropped");
    }
  }
  changed_.notify_all();
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { work(); });
  }
}

bool MessageQueue::wait(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, most, [this] { return waiting_.empty() && !is_sending_; });
}

std::vector<std::string> MessageQueue::take_failures() {
  const std::lock_guard lock(mutex_);
  return std::exchange(failures_, {});
}

void MessageQueue::work() {
  std::unique_lock lock(mutex_);
  while (!*gives_up_) {
    if (waiting_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const std::string text = std::move(waiting_.front());
    waiting_.pop_front();
    is_sending_ = true;
    lock.unlock();
    std::string failure;
    try {
      send_(text);
    } catch (...) {
      failure = describe(std::current_exception());
    }
    lock.lock();
    is_sending_ = false;
    if (!failure.empty()) {
      failures_.push_back(std::move(failure));
    }
    changed_.notify_all();
  }
}

}  // namespace rondo
