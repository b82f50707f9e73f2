#include "data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/error.h"

namespace rondo {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    throw IoError("cannot open " + path.string(), errno);
  }

  struct stat status {};

  int error = ::fstat(file, &status) == 0 ? 0 : errno;
  if (error == 0 && status.st_size > 0) {
    size_ = static_cast<size_t>(status.st_size);
    void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file, 0);
    error = mapped == MAP_FAILED ? errno : 0;
    data_ = error == 0 ? mapped : nullptr;
  }
  ::close(file);  // the mapping holds the file
  if (error != 0) {
    throw IoError("cannot map " + path.string(), error);
  }
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    ::munmap(data_, size_);
  }
}

}  // namespace rondo
