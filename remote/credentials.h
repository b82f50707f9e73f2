#pragma once

#include <functional>
#include <optional>
#include <string>

#include "remote/signature_v4.h"

namespace rondo {

/// Values of environment variables; "" counts as none.
using Environment = std::function<std::optional<std::string>(const char* name)>;

Environment process_environment();

/// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, else the profile AWS_PROFILE
/// ("default") of the file AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials). Read at each call:
/// programs that renew credentials write the file again.
/// \throws UsageError  when there are none, naming what was looked for
Credentials find_credentials(const Environment& environment);

/// AWS_REGION, AWS_DEFAULT_REGION, else that of the profile in AWS_CONFIG_FILE (~/.aws/config),
/// else none.
std::optional<std::string> find_region(const Environment& environment);

}  // namespace rondo
