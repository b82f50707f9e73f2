// Source: RFC 1952, and zlib's manual.

#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>

#include "checkpoint/internal/compression.h"
#include "checkpoint/internal/malformed.h"

namespace rondo::detail {

namespace {

/// The largest window, in a gzip frame.
constexpr int kWindowBits = 15 + 16;
constexpr int kMemoryLevel = 8;

/// zlib counts in 32 bits.
constexpr size_t kLargestPiece = size_t{1} << 30;

/// A stream of zlib's, and room for what comes out of it.
class GzipCoder : public Coder {
 protected:
  GzipCoder() = default;

  /// Gives `to` what one call of zlib's made of the input.
  /// \param step  deflate or inflate
  template <class Step>
  int advance(const Step& step, const Sink& to) {
    stream_.next_out = out_.data();
    stream_.avail_out = static_cast<uInt>(out_.size());
    const int code = step(&stream_);
    const size_t size = out_.size() - stream_.avail_out;
    if (size > 0) {
      to(out_.data(), size);
    }
    return code;
  }

  z_stream stream_ = {};

 private:
  std::array<unsigned char, size_t{1} << 16> out_ = {};
};

class GzipEncoder final : public GzipCoder {
 public:
  GzipEncoder() {
    // Weights hardly shrink further on higher levels, which take many times as long.
    if (::deflateInit2(
            &stream_, Z_BEST_SPEED, Z_DEFLATED, kWindowBits, kMemoryLevel, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
      throw std::bad_alloc();
    }
  }

  GzipEncoder(const GzipEncoder&) = delete;
  GzipEncoder& operator=(const GzipEncoder&) = delete;

  ~GzipEncoder() override { ::deflateEnd(&stream_); }

  void put(const void* bytes, size_t size, const Sink& to) override {
    const auto* next = static_cast<const unsigned char*>(bytes);
    while (size > 0) {
      const size_t piece = std::min(size, kLargestPiece);
      stream_.next_in = const_cast<unsigned char*>(next);
      stream_.avail_in = static_cast<uInt>(piece);
      while (stream_.avail_in > 0) {
        advance([](z_stream* stream) { return ::deflate(stream, Z_NO_FLUSH); }, to);
      }
      next += piece;
      size -= piece;
    }
  }

  void finish(const Sink& to) override {
    const auto step = [](z_stream* stream) { return ::deflate(stream, Z_FINISH); };
    while (advance(step, to) != Z_STREAM_END) {
    }
  }
};

class GzipDecoder final : public GzipCoder {
 public:
  GzipDecoder() {
    if (::inflateInit2(&stream_, kWindowBits) != Z_OK) {
      throw std::bad_alloc();
    }
  }

  GzipDecoder(const GzipDecoder&) = delete;
  GzipDecoder& operator=(const GzipDecoder&) = delete;

  ~GzipDecoder() override { ::inflateEnd(&stream_); }

  /// `size` < 4 GiB.
  void put(const void* bytes, size_t size, const Sink& to) override {
    stream_.next_in = static_cast<unsigned char*>(const_cast<void*>(bytes));
    stream_.avail_in = static_cast<uInt>(size);
    do {
      if (has_ended_ && stream_.avail_in > 0) {
        ::inflateReset(&stream_);  // another stream follows
        has_ended_ = false;
      }
      const int code = advance([](z_stream* s) { return ::inflate(s, Z_NO_FLUSH); }, to);
      has_ended_ = has_ended_ || code == Z_STREAM_END;
      if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
        throw Malformed("the gzip stream is damaged");
      }
    } while (stream_.avail_in > 0 || stream_.avail_out == 0);
  }

  void finish(const Sink&) override {
    if (!has_ended_) {
      throw Malformed("the gzip stream was cut short");
    }
  }

 private:
  bool has_ended_ = false;
};

}  // namespace

std::unique_ptr<Coder> make_gzip_encoder() {
  return std::make_unique<GzipEncoder>();
}

std::unique_ptr<Coder> make_gzip_decoder() {
  return std::make_unique<GzipDecoder>();
}

}  // namespace rondo::detail
