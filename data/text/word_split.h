#pragma once

#include <functional>
#include <string_view>

namespace rondo::detail {

/// Cuts a text where byte pairs never merge: into words with the blank before them, numbers, other
/// signs and blanks. Together the parts are the text. Source: the pattern of GPT-2's published
/// code. \throws DataError  for text that is no UTF-8, naming the offset, or when rondo was built
/// without
///                    the library
void split_words(std::string_view text, const std::function<void(std::string_view)>& take);

}  // namespace rondo::detail
