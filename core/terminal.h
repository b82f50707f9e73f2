#pragma once

#include <optional>

namespace rondo {

/// How many characters a line of the terminal behind a file descriptor has now: its window may be
/// resized. Nothing where it is no terminal, or does not tell.
std::optional<int> terminal_columns(int fd);

}  // namespace rondo
