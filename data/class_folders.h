#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/dataset_facts.h"
#include "core/state_dict.h"
#include "data/splits/table_split.h"

namespace rondo {

/// Files in folders that are named after their class, files that a table gives a class, or files
/// without one in any folders.
struct ClassFolders {
  struct File {
    std::filesystem::path path;
    int64_t label = 0;
  };

  /// What a data set looks for.
  struct Wanted {
    std::string owner;                 ///< for messages: "ImageFolder"
    std::string root;                  ///< the folder of the classes' folders
    std::vector<std::string> classes;  ///< in the order of their numbers; none: all, sorted
    std::vector<std::string> endings;  ///< of files, in small letters: ".jpg"
    std::optional<std::filesystem::path> data_dir;  ///< of a relative root; else RONDO_DATA
    bool labelled = true;                           ///< false: files have no class
    std::string labels_file = {};  ///< in root, with the columns "file" and "label"; else folders
    TableSplit split = {};         ///< which files are used; by chance, class or fold
  };

  /// Lists the files, class after class and sorted by path; none is opened.
  /// \throws DataError  when the folder, a class or a file of a class is missing
  static ClassFolders list(const Wanted& wanted);

  /// Classes with their weights. Of files without a class those that `take_fitted` gave.
  DatasetFacts facts() const;

  /// The names of the classes, in the order of their numbers; empty when files have none.
  StateDict fitted() const;

  /// Numbers the files by the classes of `state`, which may have no file here.
  /// \throws DataError        naming a class of these files that is not among them
  /// \throws CheckpointError  when it is not what `fitted` of the same owner gives
  void take_fitted(const StateDict& state);

  /// The class of each file.
  std::vector<double> labels() const;

  /// A file's path from the root on.
  std::string name(int64_t index) const;

  /// A file's bytes. \throws IoError
  std::string content(int64_t index) const;

  int64_t size() const { return static_cast<int64_t>(files.size()); }

  const File& operator[](int64_t index) const { return files[static_cast<size_t>(index)]; }

  std::string owner = {};
  std::filesystem::path root = {};
  std::vector<std::string> classes = {};
  std::vector<File> files = {};  // without a class, all of number 0
  bool labelled = true;
};

}  // namespace rondo
