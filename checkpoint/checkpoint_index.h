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
/// directory are relative to it, so that a run can be moved; others are absolute, and when there is
/// no such file any more, looked for by its name in the checkpoint directory. The file is
/// written atomically and only when it changes, under the lock of `checkpoints_index.toml.lock`:
/// any number of processes and threads may use an index of the same directory, and lose nothing.
///
/// A file that is about to get its name is announced, and listed from the moment when it is there:
/// a process that dies in between leaves no file that nobody knows of.
///
/// Where there is no index file, the files in the checkpoint directory whose names the template
/// makes are taken for listed, in order; the next change writes them down. Not where that directory
/// is outside of the run's: several runs may share it.
///
/// All throw IoError, and CheckpointError naming the file when it is not an index.
class CheckpointIndex {
 public:
  /// Reads and writes nothing yet.
  /// \param checkpoint_root  where checkpoints are saved; empty: in `model_dir`
  CheckpointIndex(std::shared_ptr<FileSystem> files,
                  std::filesystem::path model_dir,
                  CheckpointName name,
                  std::filesystem::path checkpoint_root = {});

  /// Every listed path, in the order in which they were appended.
  std::vector<std::filesystem::path> listed() const;

  /// The listed paths whose file name the template makes, by step as a number, then by suffix, none
  /// first.
  std::vector<std::filesystem::path> all() const;

  /// What a run may resume from, the best last: `all`, and before them, in their order, what is
  /// listed under names of another template.
  std::vector<std::filesystem::path> resumable() const;

  /// The last of `resumable`.
  std::optional<std::filesystem::path> newest() const;

  /// True when a path is among `listed`, however it is spelt.
  bool lists(const std::filesystem::path& checkpoint) const;

  /// Lists a path as soon as there is a file.
  void announce(const std::filesystem::path& checkpoint);

  /// Adds a path at the end; nothing when it is listed already.
  void append(const std::filesystem::path& checkpoint);

  /// \return true when it was listed. The checkpoint itself is left alone.
  bool remove(const std::filesystem::path& checkpoint);

  /// Takes out the paths at which there is no file any more, unless none would be left: then they
  /// are more likely out of reach than deleted. Writes down where those that moved are now.
  /// \return the paths taken out
  std::vector<std::filesystem::path> drop_vanished();

  std::filesystem::path file() const { return model_dir_ / "checkpoints_index.toml"; }

 private:
  using Entries = std::vector<std::string>;

  /// What is listed, and what is announced and not there.
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

/// The entries that an index lists, none of them read as a path.
/// \param file  named in errors
/// \throws CheckpointError  when it is no index
std::vector<std::string> checkpoints_in_index(const std::filesystem::path& file,
                                              const std::string& text);

/// True for two spellings of one path; links are not followed.
bool is_same_path(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace rondo
