#pragma once

#include <cstddef>
#include <string>

#include "core/file_descriptor.h"

namespace rondo {

/// Memory that the ranks of one host share. It has no name in the file system: others open it
/// through the process that made it, and it is gone with the last of them. All of it is reserved
/// when it is made, so that a write cannot end the process for lack of space.
class SharedMemory {
 public:
  /// \throws IoError  when there is not enough of it
  static SharedMemory make(size_t bytes);

  /// Opens what another process made. \throws IoError
  static SharedMemory open(const std::string& path, size_t bytes);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();

  char* data() const { return data_; }

  /// Where other processes of this host open it.
  std::string path() const;

 private:
  SharedMemory(detail::FileDescriptor file, size_t bytes);

  detail::FileDescriptor file_;
  size_t bytes_ = 0;
  char* data_ = nullptr;
};

}  // namespace rondo
