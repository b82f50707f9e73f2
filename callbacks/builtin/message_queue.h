#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace rondo {

/// Sends messages in the background, one after the other, so that a slow server does not hold the
/// run up. Of more than 100 waiting messages it drops the oldest.
class MessageQueue {
 public:
  /// \param send  called by the queue's thread; its error is kept, and the next message follows
  explicit MessageQueue(std::function<void(const std::string& text)> send);
  MessageQueue(const MessageQueue&) = delete;
  MessageQueue& operator=(const MessageQueue&) = delete;

  /// Drops what is waiting, and tells `send` to give up.
  ~MessageQueue();

  void push(std::string text);

  /// Waits until every message was sent or failed. \return false when that takes longer than `most`
  bool wait(std::chrono::milliseconds most);

  /// What went wrong since the last call, one line a message.
  std::vector<std::string> take_failures();

  /// True once `send` should return soon.
  std::shared_ptr<const std::atomic<bool>> gives_up() const { return gives_up_; }

 private:
  void work();

  const std::function<void(const std::string&)> send_;
  const std::shared_ptr<std::atomic<bool>> gives_up_ = std::make_shared<std::atomic<bool>>(false);
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> waiting_;
  bool is_sending_ = false;
  std::vector<std::string> failures_;
  std::thread thread_;  // from the first message on
};

}  // namespace rondo
