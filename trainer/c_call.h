#pragma once

#include <fmt/format.h>

#include <exception>
#include <string>

#include "core/error.h"

namespace rondo::detail {

/// Runs what a C function does: nothing may be thrown into C.
/// \param error    becomes the text of what was thrown; "" where nothing was
/// \param work     gives the function's result
/// \param code_of  (std::exception_ptr) gives it where `work` threw
template <class Work, class CodeOf>
int c_call(std::string& error, const Work& work, const CodeOf& code_of) noexcept {
  try {
    error.clear();
    return work();
  } catch (...) {
    const std::exception_ptr thrown = std::current_exception();
    try {
      error = describe(thrown);
    } catch (...) {  // no memory for the text
      error.clear();
    }
    return code_of(thrown);
  }
}

/// \throws UsageError  for a null pointer
inline void require_argument(const void* argument, const char* what) {
  if (argument == nullptr) {
    throw UsageError(fmt::format("{} is null", what));
  }
}

}  // namespace rondo::detail
