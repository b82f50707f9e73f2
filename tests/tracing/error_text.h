#pragma once

#include <exception>
#include <functional>
#include <string>

#include "core/error.h"

namespace rondo::test {

/// What `run` throws, with its causes; "" when it throws nothing.
inline std::string error_text(const std::function<void()>& run) {
  try {
    run();
  } catch (...) {
    return describe(std::current_exception());
  }
  return "";
}

}  // namespace rondo::test
