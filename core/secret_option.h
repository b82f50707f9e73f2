#pragma once

#include <string>

namespace rondo {

/// The value of an option that can be a secret. "env:NAME" stands for the environment variable
/// NAME, so that neither the run's file nor the saved configuration holds the secret.
/// \param option  for the error: "NotifyWebhook.url"
/// \throws UsageError  when the variable is not set
std::string secret_option(const std::string& option, const std::string& value);

}  // namespace rondo
