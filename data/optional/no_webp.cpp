#include "core/error.h"
#include "data/internal/image_codecs.h"

namespace rondo::detail {

namespace {

[[noreturn]] void fail_without(const std::string& name) {
  throw DataError(name +
                  ": this rondo was built without WebP: install libwebp-dev and build it with "
                  "-DRONDO_WITH_WEBP=ON");
}

}  // namespace

ImageSize webp_size(const std::string& name, std::string_view) {
  fail_without(name);
}

Image decode_webp(const std::string& name, std::string_view, int64_t) {
  fail_without(name);
}

}  // namespace rondo::detail
