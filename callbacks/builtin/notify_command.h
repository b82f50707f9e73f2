#pragma once

#include <string>

#include "callbacks/builtin/notification.h"

namespace rondo {

/// A Notification by a command of the shell, which gets the message as its input and is waited for:
/// `mail -s rondo me@example.org`, or a `curl` that posts it. What the command prints goes to
/// standard error.
class NotifyCommand final : public Notification {
 public:
  struct Options {
    std::string command = {};
  };

  /// \throws UsageError  without a command
  explicit NotifyCommand(const Options& options);

 protected:
  /// Leaves the message in `<artifact_dir>/notification.txt`.
  /// \throws IoError  when the command cannot be run or fails
  void send(Trainer& trainer, const std::string& text) override;

 private:
  Options options_;
};

}  // namespace rondo
