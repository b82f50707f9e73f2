#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/state_dict.h"
#include "core/tensor_map.h"
#include "data/dataset.h"
#include "data/tables/row_names.h"

namespace rondo {

struct TableFit;

/// A table as it was read: what samples hold, and what was learnt.
struct DecodedTable {
  StateDict fit = {};
  TensorMap tensors = {};  ///< those that the table has
  RowNames names = {};
  DatasetNotes notes = {};
};

/// Keeps decoded tables in a folder, so that the next start need not read the text: a small file
/// for each with what is asked for, and its tensors in .npy files, which are mapped. A file that
/// is damaged counts as none.
class TableCache {
 public:
  /// \param sources  files that the table is read from
  /// \param options  in text: everything else that the result depends on
  /// \param given    what another table learnt, where this one is read with it; the cache keeps
  ///                 the table for the newest one
  TableCache(std::filesystem::path folder,
             const std::vector<std::filesystem::path>& sources,
             const std::string& options,
             const TableFit* given = nullptr);

  /// The table, when it was stored for the same options, `given` and files: of the same size,
  /// changed at the same time, with the same bytes at begin and end.
  std::optional<DecodedTable> find() const;

  /// \throws IoError  when the folder cannot be written
  void store(const DecodedTable& table) const;

 private:
  std::filesystem::path path_of(const std::string& ending) const;

  bool is_for(const StateDict& stored) const;

  std::filesystem::path folder_;
  std::string key_;   // what is asked for, in text
  std::string name_;  // of the files: the key's digest
  StateDict given_;   // empty: the table learnt by itself
};

}  // namespace rondo
