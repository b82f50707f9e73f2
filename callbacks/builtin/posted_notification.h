#pragma once

#include <cstdint>
#include <string>

#include "callbacks/builtin/message_queue.h"
#include "callbacks/builtin/notification.h"
#include "remote/retry.h"

namespace rondo {

/// A Notification that goes over the network: in the background, and at the end of the Trainer it
/// is waited for.
class PostedNotification : public Notification {
 public:
  /// \param name     of the class, for errors
  /// \param retries  of a message, after 1, 2, 4 … seconds
  /// \param timeout  seconds that the Trainer's end waits for unsent messages
  /// \throws UsageError  for a number below 0
  PostedNotification(const char* name, int64_t retries, int64_t timeout);

  void finalize() override;

 protected:
  void send(Trainer& trainer, const std::string& text) final;

  /// Sends one message, in a thread of the queue. \throws Error  when it cannot
  virtual void post(const std::string& text) = 0;

  /// Stops the queue; derived classes call it first in their destructor, since `post` is theirs.
  void stop() { queue_.reset(); }

  /// For `post`.
  const RetryPolicy& policy() const { return policy_; }

 private:
  void warn_of_failures();

  std::chrono::seconds timeout_;
  Trainer* trainer_ = nullptr;  // of the first message on
  std::unique_ptr<MessageQueue> queue_;
  RetryPolicy policy_;
};

}  // namespace rondo
