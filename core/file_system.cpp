#include "core/file_system.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <random>
#include <utility>

#include "core/error.h"
#include "core/file_descriptor.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail(const char* operation, const fs::path& path, int error) {
  throw IoError(fmt::format("cannot {} {}", operation, path.string()), error);
}

int retrying_open(const fs::path& path, int flags) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

/// Waits for the lock of a new file. A file system without locks leaves it unlocked.
/// \return false when somebody took the file for a leftover and removed it before it was locked
bool lock_new_file(int fd) {
  while (::flock(fd, LOCK_EX) != 0 && errno == EINTR) {
  }
  struct stat status = {};
  return ::fstat(fd, &status) != 0 || status.st_nlink > 0;
}

class RealFile final : public WritableFile {
 public:
  RealFile(int fd, fs::path path) : fd_(fd), path_(std::move(path)) {}

  void append(const void* bytes, size_t size) override {
    const char* next = static_cast<const char*>(bytes);
    while (size > 0) {
      const ssize_t written = ::write(fd_.get(), next, size);
      if (written < 0 && errno == EINTR) {
        continue;
      }
      if (written < 0) {
        fail("write", path_, errno);
      }
      next += written;
      size -= static_cast<size_t>(written);
    }
  }

  void sync() override {
    if (::fsync(fd_.get()) != 0) {
      fail("sync", path_, errno);
    }
  }

  void close() override {
    if (::close(fd_.release()) != 0) {
      fail("close", path_, errno);
    }
  }

 private:
  detail::FileDescriptor fd_;
  fs::path path_;
};

class RealFileSystem final : public FileSystem {
 public:
  std::unique_ptr<WritableFile> create(const fs::path& path) override {
    while (true) {
      detail::FileDescriptor file(retrying_open(path, O_WRONLY | O_CREAT | O_EXCL));
      if (file.get() < 0) {
        fail("create", path, errno);
      }
      if (lock_new_file(file.get())) {
        return std::make_unique<RealFile>(file.release(), path);
      }
    }
  }

  std::string read(const fs::path& path) override {
    const detail::FileDescriptor file(retrying_open(path, O_RDONLY));
    if (file.get() < 0) {
      fail("open", path, errno);
    }
    std::string bytes;
    char block[1 << 16];
    while (true) {
      const ssize_t got = ::read(file.get(), block, sizeof block);
      if (got < 0 && errno == EINTR) {
        continue;
      }
      if (got < 0) {
        fail("read", path, errno);
      }
      if (got == 0) {
        return bytes;
      }
      bytes.append(block, static_cast<size_t>(got));
    }
  }

  void rename(const fs::path& from, const fs::path& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) {
      fail("rename", from, errno);
    }
  }

  void rename_new(const fs::path& from, const fs::path& to) override {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) {
      return;
    }
    if (errno != EINVAL && errno != ENOSYS) {
      fail("rename", from, errno);
    }
    // This file system has no such rename: a link is not made over a file either.
    if (::link(from.c_str(), to.c_str()) == 0) {
      remove(from);
      return;
    }
    if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS) {
      fail("rename", from, errno);
    }
    if (exists(to)) {
      fail("rename", from, EEXIST);
    }
    rename(from, to);
  }

  void symlink(const fs::path& target, const fs::path& link) override {
    if (::symlink(target.c_str(), link.c_str()) != 0) {
      fail("create the link", link, errno);
    }
  }

  bool remove(const fs::path& path) override {
    if (::unlink(path.c_str()) == 0) {
      return true;
    }
    if (errno != ENOENT) {
      fail("remove", path, errno);
    }
    return false;
  }

  void create_directories(const fs::path& path) override {
    std::error_code error;
    fs::create_directories(path, error);
    if (error) {
      fail("create the directory", path, error.value());
    }
  }

  void sync_directory(const fs::path& path) override {
    const detail::FileDescriptor directory(
        retrying_open(path.empty() ? "." : path, O_RDONLY | O_DIRECTORY));
    if (directory.get() < 0) {
      fail("open the directory", path, errno);
    }
    if (::fsync(directory.get()) != 0 &&
        errno != EINVAL) {  // EINVAL: this file system has no such sync
      fail("sync the directory", path, errno);
    }
  }

  bool exists(const fs::path& path) override {
    struct stat status = {};
    if (::stat(path.c_str(), &status) == 0) {
      return true;
    }
    if (errno != ENOENT && errno != ENOTDIR) {
      fail("look for", path, errno);
    }
    return false;
  }

  std::vector<std::string> list(const fs::path& path) override {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error)) {
      names.push_back(entry->path().filename().string());
    }
    if (error && error.value() != ENOENT && error.value() != ENOTDIR) {
      fail("list", path, error.value());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
};

}  // namespace

std::shared_ptr<FileSystem> real_file_system() {
  static const auto files = std::make_shared<RealFileSystem>();
  return files;
}

namespace {

/// Writes and syncs a temporary file, which `publish` then gives its name.
void write_temporary(FileSystem& files,
                     const fs::path& temporary,
                     const std::function<void(WritableFile&)>& write,
                     const std::function<void()>& publish) {
  try {
    const std::unique_ptr<WritableFile> file = files.create(temporary);
    write(*file);
    file->sync();
    publish();  // before it is closed: while it is locked, nobody may take it for a leftover
    file->close();
  } catch (...) {
    try {
      files.remove(temporary);
    } catch (const IoError&) {  // the first error is the one to tell
    }
    throw;
  }
  files.sync_directory(temporary.parent_path());
}

}  // namespace

fs::path temporary_name(const fs::path& path) {
  static thread_local std::random_device device;
  return path.string() + fmt::format(".{:08x}.tmp", device());
}

void write_atomically(FileSystem& files,
                      const fs::path& path,
                      const std::function<void(WritableFile&)>& write) {
  const fs::path temporary = temporary_name(path);
  write_temporary(files, temporary, write, [&] { files.rename(temporary, path); });
}

fs::path write_new(FileSystem& files,
                   fs::path path,
                   const NewName& name,
                   const std::function<void(WritableFile&)>& write) {
  const fs::path temporary = temporary_name(path);
  write_temporary(files, temporary, write, [&] {
    for (int attempt = 1;; ++attempt) {
      if (name.announce) {
        name.announce(path);
      }
      try {
        files.rename_new(temporary, path);
        return;
      } catch (const IoError& error) {
        constexpr int kAttempts = 100;
        if (error.error_number != EEXIST || attempt == kAttempts) {
          throw;
        }
        path = name.free_path();
      }
    }
  });
  return path;
}

void write_atomically(FileSystem& files, const fs::path& path, std::string_view bytes) {
  write_atomically(
      files, path, [bytes](WritableFile& file) { file.append(bytes.data(), bytes.size()); });
}

}  // namespace rondo
