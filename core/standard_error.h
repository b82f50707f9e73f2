#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rondo {

/// Writes text to standard error at once. Where that is closed or full, the text is lost, quietly:
/// no SIGPIPE, no exception. Any thread may write.
void write_to_stderr(std::string_view text);

/// Keeps these lines below everything that is written to standard error from now on, in the place
/// of those that it kept before; none: takes them away. For terminals: it moves the cursor, and
/// changes nothing that a process which dies would have to put back.
/// \param lines  none longer than the terminal is wide
void show_below_stderr(std::vector<std::string> lines);

}  // namespace rondo
