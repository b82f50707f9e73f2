#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace rondo {

/// The text with a "?" for each control character, so that what a run recorded cannot move the
/// cursor, color, clear or rename a terminal. UTF-8 stays.
std::string printable(std::string_view text);

/// Characters of UTF-8 text.
size_t width_of(std::string_view text);

/// The first `count` characters of UTF-8 text.
std::string first_characters(const std::string& text, size_t count);

/// How many characters a line of the terminal behind a file descriptor has now: its window may be
/// resized. Nothing where it is no terminal, or does not tell.
std::optional<int> terminal_columns(int fd);

}  // namespace rondo
