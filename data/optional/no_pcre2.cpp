#include "core/error.h"
#include "data/optional_reader.h"
#include "data/text/word_split.h"

namespace rondo::detail {

void split_words(std::string_view, const std::function<void(std::string_view)>&) {
  throw DataError(without_reader("PCRE2", "byte pairs"));
}

}  // namespace rondo::detail
