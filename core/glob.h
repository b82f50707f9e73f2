#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rondo {

/// True when `text` matches the shell pattern: `*` any run of characters (also "." and "/"),
/// `?` one character; everything else, and its case, literally.
bool glob_match(std::string_view pattern, std::string_view text);

/// True when `text` matches one of the patterns.
bool matches_any(const std::vector<std::string>& patterns, std::string_view text);

/// The candidate nearest to `word` by edit distance, or "" when none is near enough to be meant.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// `; did you mean "x"?` when a candidate is near, else "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// The same, then `; known: a, b, c` in sorted order.
std::string suggestion(std::string_view word, std::vector<std::string> candidates);

}  // namespace rondo
