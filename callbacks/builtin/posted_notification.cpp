#include "callbacks/builtin/posted_notification.h"

#include <fmt/format.h>

#include "trainer/trainer.h"

namespace rondo {

PostedNotification::PostedNotification(int64_t timeout)
    : timeout_(timeout),
      queue_(std::make_unique<MessageQueue>([this](const std::string& text) { post(text); })) {}

void PostedNotification::finalize() {
  if (trainer_ == nullptr) {
    return;
  }
  if (!queue_->wait(timeout_)) {
    trainer_->log().warning(
        fmt::format("a notification was not sent within {} s", timeout_.count()));
  }
  warn_of_failures();
}

void PostedNotification::send(Trainer& trainer, const std::string& text) {
  trainer_ = &trainer;
  warn_of_failures();
  queue_->push(text);
}

void PostedNotification::warn_of_failures() {
  for (const std::string& failure : queue_->take_failures()) {
    trainer_->log().warning("nobody was notified: " + failure);
  }
}

}  // namespace rondo
