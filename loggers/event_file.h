#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace rondo {

/// A TensorBoard event file: records of a length, a payload and their masked CRC-32C.
/// Source: TensorFlow's TFRecord format and tensorboard/compat/proto/event.proto.
class EventFile {
 public:
  /// Creates `directory` and in it a new `events.out.tfevents.…` file.
  /// \throws IoError
  explicit EventFile(const std::filesystem::path& directory);

  /// One event with scalars by tag.
  void add_scalars(int64_t step, const std::vector<std::pair<std::string, float>>& scalars);

  /// Goes on in a new file when what was added could not be written, on a full disk for instance.
  /// \throws IoError  then, once until something can be written again
  void flush();

  const std::filesystem::path& path() const { return path_; }

 private:
  void begin();
  void write_record(const std::string& payload);

  std::filesystem::path path_;
  std::ofstream out_;
  bool is_failing_ = false;
};

/// CRC-32C (Castagnoli) of `bytes`. Source: RFC 3720, appendix B.4.
uint32_t crc32c(const void* bytes, size_t size);

}  // namespace rondo
