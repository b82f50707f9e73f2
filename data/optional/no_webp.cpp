#include "core/error.h"
#include "data/images/image_codecs.h"
#include "data/optional_reader.h"

namespace rondo::detail {

ImageSize webp_size(const std::string& name, std::string_view) {
  throw DataError(without_reader("WEBP", name));
}

Image decode_webp(const std::string& name, std::string_view, int64_t) {
  throw DataError(without_reader("WEBP", name));
}

}  // namespace rondo::detail
