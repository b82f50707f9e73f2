#pragma once

#include <string>

#include "core/error.h"

namespace rondo {

/// A store elsewhere did not do what was asked. No message of it has a secret in it.
struct RemoteError : IoError {
  /// \param what   operation, address and what to do
  /// \param retry  a later try may succeed: the connection broke, the server was busy
  RemoteError(const std::string& what, bool retry) : IoError(what, 0), can_retry(retry) {}

  bool can_retry = false;
};

}  // namespace rondo
