#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/arrays/raw_array.h"
#include "data/dataset.h"
#include "data/tensor_dataset.h"

namespace rondo {

/// Where one tensor of a sample comes from.
struct ArraySource {
  std::string tensor;  ///< its name in a batch
  std::string file;    ///< name or path: .npy, .npz, .safetensors, .pt, .pth, a checkpoint, .h5
  std::string entry;   ///< in the file; "" where it holds one array alone
  RawArray raw = {};   ///< of a file that holds nothing but numbers
};

/// Samples that are the rows of arrays in files: the first dimension of each array counts them.
/// .npy files of NumPy stay on disk, mapped, where a tensor can have their bytes; others are read
/// into memory.
class ArrayFiles final : public Dataset {
 public:
  struct Options {
    std::vector<ArraySource> arrays = {};  ///< at least one
    bool narrow = true;                    ///< float64 and float16 become float32
    bool unpack = true;  ///< fill values and packed numbers of HDF5 as the CF conventions say
    int64_t first = 0;   ///< number of the first row that is used
    std::optional<int64_t> count = {};                   ///< rows from there; all when absent
    std::optional<std::filesystem::path> data_dir = {};  ///< else the environment's RONDO_DATA
    std::string folder = {};                             ///< of data_dir, looked into as well
  };

  /// \throws DataError  naming the file and what is wrong: the place of damage, an entry that is
  ///                    not there with those that are, arrays of different lengths
  explicit ArrayFiles(const Options& options);

  /// \throws UsageError  for files of a library that rondo was built without
  static void check(const Options& options);

  int64_t size() const override { return rows_.size(); }

  Sample get(int64_t index) const override { return rows_.get(index); }

  Batch get_batch(const std::vector<int64_t>& indices) const override {
    return rows_.get_batch(indices);
  }

 private:
  TensorDataset rows_;
};

}  // namespace rondo
