#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_name.h"
#include "core/file_system.h"

namespace rondo {

/// The list of a run's checkpoints, `<model_dir>/checkpoints_index.toml`. Paths inside the run
/// directory are relative to it, so that a run can be moved. Others are absolute; if such a file no
/// longer exists, the index looks for its name in the checkpoint directory. The index is written
/// atomically and only when it changes, under the lock of `checkpoints_index.toml.lock`: any number
/// of processes and threads can use the index of one directory without losing entries.
///
/// A save announces a file before it renames it into place, and the file is listed as soon as it
/// exists: a process that dies in between leaves no unlisted file.
///
/// Without an index file, the files in the checkpoint directory whose names match the template
/// count as listed, in order; the next change writes the index. This excludes a checkpoint
/// directory outside the run's, which several runs may share.
///
/// All methods throw IoError, and CheckpointError naming the file when it is not an index.
class CheckpointIndex {
 public:
  /// Reads and writes nothing yet.
  /// \param checkpoint_root  where checkpoints are saved; empty: in `model_dir`
  CheckpointIndex(std::shared_ptr<FileSystem> files,
                  std::filesystem::path model_dir,
                  CheckpointName name,
                  std::filesystem::path checkpoint_root = {});

  /// Every listed path, in the order of appending.
  std::vector<std::filesystem::path> listed() const;

  /// The listed paths whose file name matches the template, sorted by step as a number, then by
  /// suffix, with none first.
  std::vector<std::filesystem::path> all() const;

  /// The checkpoints from which a run can resume, best last: `all`, preceded by listed names of
  /// other templates in their order.
  std::vector<std::filesystem::path> resumable() const;

  /// The last of `resumable`.
  std::optional<std::filesystem::path> newest() const;

  /// True when a path is among `listed`, however it is spelt.
  bool lists(const std::filesystem::path& checkpoint) const;

  /// Announces a path, which is listed as soon as the file exists.
  void announce(const std::filesystem::path& checkpoint);

  /// Adds a path at the end; does nothing when it is listed already.
  void append(const std::filesystem::path& checkpoint);

  /// Removes a path from the list, not the checkpoint itself. \return true when it was listed
  bool remove(const std::filesystem::path& checkpoint);

  /// Removes the paths whose file no longer exists, unless none would be left: then they are more
  /// likely unreachable than deleted. Updates the paths of files that moved.
  /// \return the removed paths
  std::vector<std::filesystem::path> drop_vanished();

  std::filesystem::path file() const { return model_dir_ / "checkpoints_index.toml"; }

 private:
  using Entries = std::vector<std::string>;

  /// Listed entries, and announced ones that do not exist yet.
  struct Content {
    Entries checkpoints;
    Entries announced;
  };

  template <class Change>
  void update(const Change& change);

  Content read() const;
  Entries adopt() const;
  std::filesystem::path path_of(const std::string& entry) const;
  std::string entry_of(const std::filesystem::path& checkpoint) const;

  std::shared_ptr<FileSystem> files_;
  std::filesystem::path model_dir_;
  CheckpointName name_;
  std::filesystem::path root_;
};

/// The text of an index that lists these entries. \throws CheckpointError  for one that is not
/// UTF-8
std::string index_text(const std::vector<std::string>& checkpoints);

/// The entries of an index, as text.
/// \param file  named in errors
/// \throws CheckpointError  when it is not an index
std::vector<std::string> checkpoints_in_index(const std::filesystem::path& file,
                                              const std::string& text);

/// True for two spellings of one path; links are not followed.
bool is_same_path(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace rondo
