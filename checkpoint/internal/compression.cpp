#include "checkpoint/internal/compression.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/error.h"

namespace rondo::detail {

namespace {

/// Suffixes that promise something else than rondo writes.
constexpr const char* kForeign[] = {".7z",
                                    ".br",
                                    ".bz2",
                                    ".gzip",
                                    ".lz4",
                                    ".lzma",
                                    ".lzo",
                                    ".rar",
                                    ".tar",
                                    ".tbz2",
                                    ".tgz",
                                    ".txz",
                                    ".xz",
                                    ".zstd"};

}  // namespace

Compression compression_of_name(const std::filesystem::path& path) {
  const std::string suffix = path.extension().string();
  const std::string inner = path.stem().extension().string();
  if (inner == ".tar" ||
      std::find(std::begin(kForeign), std::end(kForeign), suffix) != std::end(kForeign)) {
    throw UsageError(fmt::format(
        "\"{}\": a checkpoint is one file, plain or compressed with zstd or gzip; name it as in "
        "\"x.pt\", \"x.pt.zst\" or \"x.pt.gz\"",
        path.filename().string()));
  }
  const Compression compression = suffix == ".gz"    ? Compression::Gzip
                                  : suffix == ".zst" ? Compression::Zstd
                                                     : Compression::None;
  if (compression != Compression::None && inner == ".safetensors") {
    throw UsageError(
        fmt::format("\"{}\": no reader of safetensors takes a compressed file; name it \"{}\"",
                    path.filename().string(),
                    path.stem().string()));
  }
  return compression;
}

Compression compression_of_content(std::string_view start) {
  // RFC 1952, with the one method there is; RFC 8878.
  constexpr std::string_view kGzip = "\x1f\x8b\x08";
  constexpr std::string_view kZstd = "\x28\xb5\x2f\xfd";
  return start.substr(0, kGzip.size()) == kGzip   ? Compression::Gzip
         : start.substr(0, kZstd.size()) == kZstd ? Compression::Zstd
                                                  : Compression::None;
}

std::unique_ptr<Coder> make_encoder(Compression compression) {
  return compression == Compression::Gzip ? make_gzip_encoder() : make_zstd_encoder();
}

std::unique_ptr<Coder> make_decoder(Compression compression) {
  return compression == Compression::Gzip ? make_gzip_decoder() : make_zstd_decoder();
}

}  // namespace rondo::detail
