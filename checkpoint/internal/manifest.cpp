#include "checkpoint/internal/manifest.h"

#include <fmt/format.h>
#include <torch/version.h>

#include <charconv>

#include "checkpoint/internal/bytes.h"

namespace rondo::detail {

std::string make_manifest(std::optional<int64_t> step) {
  const std::string origin = fmt::format("format = {}\nwriter = \"rondo {}\"\nlibtorch = \"{}\"\n",
                                         kFormatVersion,
                                         RONDO_VERSION,
                                         TORCH_VERSION);
  return step ? origin + fmt::format("step = {}\n", *step) : origin;
}

void check_manifest(std::string_view manifest) {
  constexpr std::string_view kKey = "format = ";
  const std::string_view line = ByteReader(manifest).line();
  const char* end = line.data() + line.size();
  int format = 0;
  if (line.substr(0, kKey.size()) != kKey ||
      std::from_chars(line.data() + kKey.size(), end, format).ptr != end || format < 1) {
    throw Malformed("does not begin with \"format = <number>\"");
  }
  if (format > kFormatVersion) {
    throw Malformed(
        fmt::format("format {} of a newer rondo; this one reads up to {}", format, kFormatVersion));
  }
}

}  // namespace rondo::detail
