#include "callbacks/builtin/posted_notification.h"

#include <fmt/format.h>

#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

PostedNotification::PostedNotification(const char* name, int64_t retries, int64_t timeout)
    : timeout_(timeout),
      queue_(std::make_unique<MessageQueue>([this](const std::string& text) { post(text); })) {
  detail::require(retries >= 0, fmt::format("{}.retries", name), ">= 0", retries);
  detail::require(timeout >= 0, fmt::format("{}.timeout", name), ">= 0", timeout);
  policy_.retries = retries;
  policy_.gives_up = queue_->gives_up();
}

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
