#pragma once

#include <cstdint>
#include <string>

#include "callbacks/builtin/message_queue.h"
#include "callbacks/builtin/notification.h"

namespace rondo {

/// A Notification that goes over the network: in the background, and at the end of the Trainer it
/// is waited for.
class PostedNotification : public Notification {
 public:
  /// \param timeout  seconds that the Trainer's end waits for what was not sent yet
  explicit PostedNotification(int64_t timeout);

  void finalize() override;

 protected:
  void send(Trainer& trainer, const std::string& text) final;

  /// Sends one message, in a thread of the queue. \throws Error  when it cannot
  virtual void post(const std::string& text) = 0;

  /// Stops the queue; derived classes call it first in their destructor, since `post` is theirs.
  void stop() { queue_.reset(); }

  std::shared_ptr<const std::atomic<bool>> gives_up() const { return queue_->gives_up(); }

 private:
  void warn_of_failures();

  std::chrono::seconds timeout_;
  Trainer* trainer_ = nullptr;  // of the first message on
  std::unique_ptr<MessageQueue> queue_;
};

}  // namespace rondo
