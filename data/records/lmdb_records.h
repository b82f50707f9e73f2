#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/records/record_form.h"

namespace rondo {

/// Samples in an LMDB database, whose keys are names of small files: those of a sample differ in
/// their endings, 0001.jpg and 0001.cls. The file stays on disk, mapped; nobody may write it
/// meanwhile.
class LmdbRecords final : public Dataset {
 public:
  struct Options {
    std::string file = {};                   ///< the database: its folder, or its file
    std::vector<RecordTensor> tensors = {};  ///< of a sample; at least one
    std::string ending = {};                 ///< of keys that have none, such as "npz"
    int64_t height = 224;                    ///< of pictures
    int64_t width = 224;
    int64_t channels = 3;                                ///< of pictures: 1 or 3
    std::optional<std::filesystem::path> data_dir = {};  ///< else the environment's RONDO_DATA
    std::string folder = {};                             ///< of data_dir, looked into as well
  };

  /// Reads every key.
  /// \throws DataError  naming file and page of what is damaged
  explicit LmdbRecords(const Options& options);
  ~LmdbRecords() override;

  /// \throws UsageError  for options that are out of range
  static void check(const Options& options);

  int64_t size() const override;
  Sample get(int64_t index) const override;

  /// The key without its ending.
  std::string sample_name(int64_t index) const override;

 private:
  struct Index;

  Options options_;
  std::unique_ptr<Index> index_;
};

}  // namespace rondo
