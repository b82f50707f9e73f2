#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rondo {

/// A file that is being written from its beginning. Closing is explicit because it can fail; the
/// destructor only gives the descriptor back.
class WritableFile {
 public:
  virtual ~WritableFile() = default;

  /// Appends all `size` bytes. \throws IoError
  virtual void append(const void* bytes, size_t size) = 0;
  /// Makes what was appended durable. \throws IoError
  virtual void sync() = 0;
  /// \throws IoError
  virtual void close() = 0;
};

/// Every operation on files that must survive a crash goes through here, so that tests can make
/// each of them fail. All throw IoError naming operation and path.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  /// A new file, locked (flock) until it is closed or its process dies, so that a file in use can
  /// be told from one that was left behind. \throws IoError  also when it exists already
  virtual std::unique_ptr<WritableFile> create(const std::filesystem::path& path) = 0;
  virtual std::string read(const std::filesystem::path& path) = 0;
  /// Replaces `to` in one step.
  virtual void rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  /// Gives a file a name that must be free, in one step where the file system can. \throws IoError
  /// with the error number EEXIST when it is not free
  virtual void rename_new(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  /// Lets `link` point to `target`, a path relative to the link's directory. `link` must be free.
  virtual void symlink(const std::filesystem::path& target, const std::filesystem::path& link) = 0;
  /// \return false when there was nothing
  virtual bool remove(const std::filesystem::path& path) = 0;
  virtual void create_directories(const std::filesystem::path& path) = 0;
  /// Makes the names in a directory durable.
  virtual void sync_directory(const std::filesystem::path& path) = 0;
  /// False only when there is surely nothing: what cannot be reached is an error.
  virtual bool exists(const std::filesystem::path& path) = 0;
  /// Names of the entries of a directory, sorted; none when there is no such directory.
  virtual std::vector<std::string> list(const std::filesystem::path& path) = 0;
};

/// The machine's own file system. Stateless.
std::shared_ptr<FileSystem> real_file_system();

/// Lets `write` fill `{path}.{8 hex}.tmp`, syncs, renames to `path` and syncs the directory: a
/// crash at any instant leaves the old or the new file. Nothing is left behind when it throws
/// IoError, or what `write` throws.
void write_atomically(FileSystem& files,
                      const std::filesystem::path& path,
                      const std::function<void(WritableFile&)>& write);
void write_atomically(FileSystem& files, const std::filesystem::path& path, std::string_view bytes);

/// How a new file gets its name.
struct NewName {
  /// A path at which there is nothing yet; asked again when another process was faster.
  std::function<std::filesystem::path()> free_path;
  /// Told the path when the file is whole, right before it is there; null: nobody is told.
  std::function<void(const std::filesystem::path&)> announce = {};
};

/// The same for a file that is to replace none: when there is one at `path` by then, the next free
/// path is taken. \return where the file is
std::filesystem::path write_new(FileSystem& files,
                                std::filesystem::path path,
                                const NewName& name,
                                const std::function<void(WritableFile&)>& write);

/// `{path}.{8 hex}.tmp`, another one at each call.
std::filesystem::path temporary_name(const std::filesystem::path& path);

}  // namespace rondo
