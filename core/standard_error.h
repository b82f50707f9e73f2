#pragma once

#include <string_view>

namespace rondo {

/// Writes text to standard error at once. Where that is closed or full, the text is lost, quietly:
/// no SIGPIPE, no exception. Any thread may write.
void write_to_stderr(std::string_view text);

}  // namespace rondo
