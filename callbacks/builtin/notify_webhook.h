#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "callbacks/builtin/posted_notification.h"

namespace rondo {

class HttpTransport;

/// A Notification that posts `{"text": "the message"}` to a web address: an incoming webhook of
/// Slack or Mattermost, or with `field = "content"` of Discord. Needs libcurl.
class NotifyWebhook final : public PostedNotification {
 public:
  struct Options {
    std::string url = {};  ///< or "env:NAME": the address is a secret
    std::string field = "text";
    int64_t retries = 5;   ///< after 1, 2, 4 … seconds
    int64_t timeout = 30;  ///< seconds that the Trainer's end waits for it
  };

  /// \throws UsageError         for an address that is none
  /// \throws NotSupportedError  in a build without libcurl
  explicit NotifyWebhook(const Options& options);
  ~NotifyWebhook() override;

 protected:
  void post(const std::string& text) override;

 private:
  Options options_;
  std::string url_;
  std::unique_ptr<HttpTransport> transport_;
};

}  // namespace rondo
