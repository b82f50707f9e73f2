#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "callbacks/builtin/posted_notification.h"
#include "remote/mail.h"

namespace rondo {

/// A Notification by e-mail, handed in over SMTP. Needs libcurl.
class NotifyMail final : public PostedNotification {
 public:
  struct Options {
    std::string server = {};  ///< "smtp://host:port" or "smtps://host:port"
    std::vector<std::string> to = {};
    std::string from = {};
    std::string user = {};      ///< "": no login; or "env:NAME", here and below
    std::string password = {};  ///< is sent over an encrypted connection only
    int64_t retries = 5;        ///< after 1, 2, 4 … seconds
    int64_t timeout = 30;       ///< seconds that the Trainer's end waits for it
  };

  /// \throws UsageError         for an address that is none
  /// \throws NotSupportedError  in a build without libcurl
  explicit NotifyMail(const Options& options);
  ~NotifyMail() override;

 protected:
  void post(const std::string& text) override;

 private:
  MailServer server_;
  Mail mail_;
};

}  // namespace rondo
