#pragma once

#include <memory>

#include "checkpoint/internal/compression.h"
#include "core/file_system.h"

namespace rondo::detail {

/// What is appended goes compressed into another file, which stays open: `close` ends the stream.
class CompressedFile final : public WritableFile {
 public:
  CompressedFile(WritableFile& file, Compression compression)
      : file_(file), encoder_(make_encoder(compression)) {}

  void append(const void* bytes, size_t size) override { encoder_->put(bytes, size, sink_); }

  void sync() override { file_.sync(); }

  void close() override { encoder_->finish(sink_); }

 private:
  WritableFile& file_;
  std::unique_ptr<Coder> encoder_;
  Coder::Sink sink_ = [this](const void* bytes, size_t size) { file_.append(bytes, size); };
};

}  // namespace rondo::detail
