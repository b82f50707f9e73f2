#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

namespace rondo::detail {

enum class Compression { None, Gzip, Zstd };

/// What a name asks for by its last suffix: ".gz", ".zst", or nothing.
/// \throws UsageError  for other kinds of compression and for names of archives, with a name that
///                     does: a plain file of such a name would be read by nobody
Compression compression_of_name(const std::filesystem::path& path);

/// What a file is that begins with these bytes; four are enough.
Compression compression_of_content(std::string_view start);

/// Turns a stream of bytes into another one, piece by piece, in bounded memory.
class Coder {
 public:
  using Sink = std::function<void(const void* bytes, size_t size)>;

  virtual ~Coder() = default;

  /// Takes bytes, and gives `to` what has come out so far.
  /// \throws Malformed  when they are not what a decoder can read
  virtual void put(const void* bytes, size_t size, const Sink& to) = 0;

  /// Gives `to` the rest. \throws Malformed  when a decoder has not seen the end of its stream
  virtual void finish(const Sink& to) = 0;
};

/// Of equal bytes come equal bytes: no name and no time is written. `compression` is not None.
std::unique_ptr<Coder> make_encoder(Compression compression);

/// Reads what any program wrote in that format, several streams end to end included.
std::unique_ptr<Coder> make_decoder(Compression compression);

std::unique_ptr<Coder> make_gzip_encoder();
std::unique_ptr<Coder> make_gzip_decoder();
std::unique_ptr<Coder> make_zstd_encoder();
std::unique_ptr<Coder> make_zstd_decoder();

}  // namespace rondo::detail
