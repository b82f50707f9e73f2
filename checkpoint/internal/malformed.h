#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace rondo::detail {

/// Bytes that are not what the format asks for. Never leaves this folder: whoever knows the place
/// turns it into a CheckpointError with `fail_at`.
struct Malformed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A place in a checkpoint. `record` may be empty; `offset` counts from the start of the file.
struct FilePlace {
  std::string path;
  std::string record;
  uint64_t offset = 0;
};

/// \throws CheckpointError  naming path, record and offset
[[noreturn]] void fail_at(const FilePlace& place, std::string_view what);

/// Text out of a file that may be hostile, fit for a message: quoted, cut at 80 bytes, and with
/// unprintable bytes replaced.
std::string in_quotes(std::string_view text);

}  // namespace rondo::detail
