#include "core/error.h"
#include "data/internal/word_split.h"
#include "data/optional_reader.h"

namespace rondo::detail {

void split_words(std::string_view, const std::function<void(std::string_view)>&) {
  throw DataError(without_reader("PCRE2", "byte pairs"));
}

}  // namespace rondo::detail
