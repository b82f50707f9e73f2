// Source: RFC 8878, and zstd.h.

#include <zstd.h>

#include <memory>
#include <new>
#include <vector>

#include "checkpoint/internal/compression.h"
#include "checkpoint/internal/malformed.h"

namespace rondo::detail {

namespace {

template <class Context, size_t (*kFree)(Context*)>
struct Free {
  void operator()(Context* context) const { kFree(context); }
};

/// \throws bad_alloc  for null, which is what zstd returns then
template <class Context>
Context* not_null(Context* context) {
  if (context == nullptr) {
    throw std::bad_alloc();
  }
  return context;
}

class ZstdEncoder final : public Coder {
 public:
  ZstdEncoder() : context_(not_null(::ZSTD_createCCtx())), out_(::ZSTD_CStreamOutSize()) {
    ::ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
  }

  void put(const void* bytes, size_t size, const Sink& to) override {
    ZSTD_inBuffer in = {bytes, size, 0};
    while (in.pos < in.size) {
      advance(in, ZSTD_e_continue, to);
    }
  }

  void finish(const Sink& to) override {
    ZSTD_inBuffer none = {nullptr, 0, 0};
    while (advance(none, ZSTD_e_end, to) > 0) {
    }
  }

 private:
  /// \return how much is left to come out, at least
  size_t advance(ZSTD_inBuffer& in, ZSTD_EndDirective directive, const Sink& to) {
    ZSTD_outBuffer out = {out_.data(), out_.size(), 0};
    const size_t left = ::ZSTD_compressStream2(context_.get(), &out, &in, directive);
    if (::ZSTD_isError(left) != 0) {
      throw std::bad_alloc();  // there is no other way to fail
    }
    if (out.pos > 0) {
      to(out_.data(), out.pos);
    }
    return left;
  }

  std::unique_ptr<ZSTD_CCtx, Free<ZSTD_CCtx, ::ZSTD_freeCCtx>> context_;
  std::vector<char> out_;
};

/// Refuses windows above 128 MiB, as `zstd` does: that is what bounds its memory.
class ZstdDecoder final : public Coder {
 public:
  ZstdDecoder() : context_(not_null(::ZSTD_createDCtx())), out_(::ZSTD_DStreamOutSize()) {}

  void put(const void* bytes, size_t size, const Sink& to) override {
    ZSTD_inBuffer in = {bytes, size, 0};
    bool is_full = false;
    while (in.pos < in.size || is_full) {
      ZSTD_outBuffer out = {out_.data(), out_.size(), 0};
      left_ = ::ZSTD_decompressStream(context_.get(), &out, &in);
      if (::ZSTD_isError(left_) != 0) {
        throw Malformed(std::string("the zstd stream is damaged: ") + ::ZSTD_getErrorName(left_));
      }
      if (out.pos > 0) {
        to(out_.data(), out.pos);
      }
      is_full = out.pos == out.size && left_ != 0;
    }
  }

  void finish(const Sink&) override {
    if (left_ != 0) {
      throw Malformed("the zstd stream was cut short");
    }
  }

 private:
  std::unique_ptr<ZSTD_DCtx, Free<ZSTD_DCtx, ::ZSTD_freeDCtx>> context_;
  std::vector<char> out_;
  size_t left_ = 1;  // that the stream still wants; 0 at its end
};

}  // namespace

std::unique_ptr<Coder> make_zstd_encoder() {
  return std::make_unique<ZstdEncoder>();
}

std::unique_ptr<Coder> make_zstd_decoder() {
  return std::make_unique<ZstdDecoder>();
}

}  // namespace rondo::detail
