#include "core/standard_error.h"

#include <cstdio>

#include "core/no_sigpipe.h"

namespace rondo {

void write_to_stderr(std::string_view text) {
  const NoSigpipe no_signal;
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace rondo
