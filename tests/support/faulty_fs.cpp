#include "support/faulty_fs.h"

#include <limits>
#include <utility>

#include "core/error.h"

namespace rondo::test {

namespace fs = std::filesystem;

class FaultyFs::File final : public WritableFile {
 public:
  File(FaultyFs& owner, std::unique_ptr<WritableFile> file, fs::path path)
      : owner_(owner), file_(std::move(file)), path_(std::move(path)) {}

  void append(const void* bytes, size_t size) override {
    owner_.count("append", [&] { file_->append(bytes, size / 2); });
    file_->append(bytes, size);
  }

  void sync() override {
    owner_.count("sync");
    file_->sync();
    owner_.unsynced_.erase(path_);
  }

  void close() override {
    owner_.count("close");
    file_->close();
  }

 private:
  FaultyFs& owner_;
  std::unique_ptr<WritableFile> file_;
  fs::path path_;
};

FaultyFs::FaultyFs(std::shared_ptr<FileSystem> files)
    : files_(std::move(files)), failing_(std::numeric_limits<size_t>::max()) {}

void FaultyFs::fail_at(size_t operation, FaultKind fault, int error) {
  failing_ = operations_.size() + operation;
  fault_ = fault;
  error_ = error;
}

template <class DoHalf>
void FaultyFs::count(const char* operation, const DoHalf& do_half) {
  if (is_dead_) {
    throw Killed();
  }
  operations_.emplace_back(operation);
  if (operations_.size() - 1 != failing_) {
    return;
  }
  if (fault_ == FaultKind::ShortWrite || fault_ == FaultKind::TornKill) {
    do_half();
  }
  if (fault_ == FaultKind::Error || fault_ == FaultKind::ShortWrite) {
    throw IoError(std::string("injected: ") + operation, error_);
  }
  is_dead_ = true;
  if (fault_ == FaultKind::PowerCut) {
    cut_power();
  }
  throw Killed();
}

void FaultyFs::count(const char* operation) {
  count(operation, [] {});
}

void FaultyFs::cut_power() {
  for (const fs::path& path : unsynced_) {
    if (fs::exists(path)) {
      fs::resize_file(path, fs::file_size(path) / 2);
    }
  }
}

std::unique_ptr<WritableFile> FaultyFs::create(const fs::path& path) {
  count("create");
  auto file = std::make_unique<File>(*this, files_->create(path), path);
  unsynced_.insert(path);
  return file;
}

std::string FaultyFs::read(const fs::path& path) {
  count("read");
  return files_->read(path);
}

void FaultyFs::rename(const fs::path& from, const fs::path& to) {
  count("rename");
  files_->rename(from, to);
  unsynced_.erase(to);
  follow(from, to);
}

void FaultyFs::rename_new(const fs::path& from, const fs::path& to) {
  count("rename_new");
  files_->rename_new(from, to);
  follow(from, to);
}

void FaultyFs::follow(const fs::path& from, const fs::path& to) {
  if (unsynced_.erase(from) > 0) {
    unsynced_.insert(to);
  }
}

void FaultyFs::symlink(const fs::path& target, const fs::path& link) {
  count("symlink");
  files_->symlink(target, link);
}

bool FaultyFs::remove(const fs::path& path) {
  count("remove");
  unsynced_.erase(path);
  return files_->remove(path);
}

void FaultyFs::create_directories(const fs::path& path) {
  count("create_directories");
  files_->create_directories(path);
}

void FaultyFs::sync_directory(const fs::path& path) {
  count("sync_directory");
  files_->sync_directory(path);
}

bool FaultyFs::exists(const fs::path& path) {
  count("exists");
  return files_->exists(path);
}

std::vector<std::string> FaultyFs::list(const fs::path& path) {
  count("list");
  return files_->list(path);
}

}  // namespace rondo::test
