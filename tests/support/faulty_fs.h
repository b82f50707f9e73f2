#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/file_system.h"

namespace rondo::test {

/// What FaultyFs throws once its process "is dead". No Error, so that nothing takes it for one.
struct Killed {};

enum class FaultKind {
  Error,       ///< the operation is not done and throws IoError; later ones work
  ShortWrite,  ///< the same, but half of an append is written first
  Kill,        ///< the operation and all later ones are not done and throw Killed
  TornKill,    ///< the same, but half of an append is written first
  PowerCut,    ///< a kill after which files that were not synced have lost their second half
};

/// A file system on which one operation goes wrong. Operations are counted from 0; an append, a
/// sync and a close count too. Not for several threads.
class FaultyFs final : public FileSystem {
 public:
  explicit FaultyFs(std::shared_ptr<FileSystem> files = real_file_system());

  /// Lets the `operation`-th of those to come go wrong. \param error  the errno of an IoError
  void fail_at(size_t operation, FaultKind fault, int error);

  /// Names of the operations so far, such as "create", "append", "rename".
  const std::vector<std::string>& operations() const { return operations_; }

  std::unique_ptr<WritableFile> create(const std::filesystem::path& path) override;
  std::string read(const std::filesystem::path& path) override;
  void rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  void rename_new(const std::filesystem::path& from, const std::filesystem::path& to) override;
  void symlink(const std::filesystem::path& target, const std::filesystem::path& link) override;
  bool remove(const std::filesystem::path& path) override;
  void create_directories(const std::filesystem::path& path) override;
  void sync_directory(const std::filesystem::path& path) override;
  bool exists(const std::filesystem::path& path) override;
  std::vector<std::string> list(const std::filesystem::path& path) override;

 private:
  class File;

  /// Counts an operation; throws when it is the one to fail, after `do_half`.
  template <class DoHalf>
  void count(const char* operation, const DoHalf& do_half);
  void count(const char* operation);
  void cut_power();
  void follow(const std::filesystem::path& from, const std::filesystem::path& to);

  std::shared_ptr<FileSystem> files_;
  std::vector<std::string> operations_;
  std::set<std::filesystem::path> unsynced_;
  size_t failing_;
  FaultKind fault_ = FaultKind::Error;
  int error_ = 0;
  bool is_dead_ = false;
};

}  // namespace rondo::test
