#include "remote/internal/file_store.h"

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "core/file_system.h"
#include "core/file_version.h"
#include "remote/remote_error.h"

namespace rondo::detail {

namespace fs = std::filesystem;

namespace {

void copy_file(FileSystem& files, const fs::path& from, const fs::path& to) {
  std::ifstream in(from, std::ios::binary);
  if (!in) {
    throw IoError("open " + from.string(), errno);
  }
  files.create_directories(fs::absolute(to).parent_path());
  write_atomically(files, to, [&](WritableFile& out) {
    std::vector<char> block(1 << 20);
    while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0) {
      out.append(block.data(), static_cast<size_t>(in.gcount()));
    }
    if (in.bad()) {
      throw IoError("read " + from.string(), errno);
    }
  });
}

class FileStore final : public RemoteStore {
 public:
  FileStore(fs::path folder, RetryPolicy retry)
      : folder_(std::move(folder)), retry_(std::move(retry)) {}

  void upload(const fs::path& file, const std::string& name) override {
    try_often(name, [&] { copy_file(*files_, file, folder_ / name); });
  }

  void put(const std::string& name, std::string_view bytes) override {
    try_often(name, [&] {
      files_->create_directories((folder_ / name).parent_path());
      write_atomically(*files_, folder_ / name, bytes);
    });
  }

  std::optional<std::string> read(const std::string& name) override {
    std::optional<std::string> bytes;
    try_often(name, [&] {
      if (files_->exists(folder_ / name)) {
        bytes = files_->read(folder_ / name);
      }
    });
    return bytes;
  }

  bool download(const std::string& name, const fs::path& file) override {
    bool is_there = false;
    try_often(name, [&] {
      is_there = files_->exists(folder_ / name);
      if (is_there) {
        copy_file(*files_, folder_ / name, file);
      }
    });
    return is_there;
  }

  std::string version(const std::string& name) override { return version_of_file(folder_ / name); }

  std::vector<std::string> list() override {
    std::vector<std::string> names;
    try_often("", [&] {
      names.clear();
      if (!files_->exists(folder_)) {
        return;
      }
      std::error_code error;
      fs::recursive_directory_iterator entry(folder_, error);
      for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
        if (entry->is_regular_file(error)) {
          names.push_back(entry->path().lexically_relative(folder_).generic_string());
        }
      }
      if (error) {
        throw IoError("list " + folder_.string(), error.value());
      }
    });
    std::sort(names.begin(), names.end());
    return names;
  }

  void remove(const std::string& name) override {
    try_often(name, [&] { files_->remove(folder_ / name); });
  }

  void check_access() override {
    constexpr const char* kProbe = ".rondo_access_check";
    put(kProbe, "");
    remove(kProbe);
  }

  std::string address_of(const std::string& name) const override {
    return "file://" + (folder_ / name).string();
  }

 private:
  /// Errors of a network file system can pass.
  void try_often(const std::string& name, const std::function<void()>& work) const {
    with_retries(retry_, [&] {
      try {
        work();
      } catch (const IoError& error) {
        const int number = error.error_number;
        const bool is_for_good = number == EACCES || number == EPERM || number == ENOENT ||
                                 number == ENOTDIR || number == EROFS || number == EISDIR;
        throw RemoteError(address_of(name) + ": " + error.what(), !is_for_good);
      }
    });
  }

  std::shared_ptr<FileSystem> files_ = real_file_system();
  fs::path folder_;
  RetryPolicy retry_;
};

}  // namespace

std::unique_ptr<RemoteStore> make_file_store(const RemoteAddress& address,
                                             RemoteSettings settings) {
  return std::make_unique<FileStore>(fs::path("/" + address.path), std::move(settings.retry));
}

}  // namespace rondo::detail
