#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/data_loader.h"

namespace rondo {

/// Something in the data of a run that is wrong, or that looks like a mistake.
struct DataFinding {
  enum class Kind {
    Unreadable,      ///< a data set that cannot be opened, or a sample that cannot be read
    NotFinite,       ///< a NaN or an infinite number
    LabelRange,      ///< a class or token that the model or the data does not know
    Duplicate,       ///< the same sample in two loaders, such as for training and validation
    ConstantColumn,  ///< a feature that is the same in every sample for training
    Leak             ///< a feature that says what is to be predicted
  };

  Kind kind = Kind::Unreadable;
  std::string loader = {};
  std::string what = {};                 ///< in words, without count and places
  int64_t count = 0;                     ///< of samples or columns
  std::vector<std::string> places = {};  ///< the first ten
};

/// "unreadable", "not_finite", "label_range", "duplicate", "constant_column", "leak".
std::string to_string(DataFinding::Kind kind);

/// A loader to check, as messages call it.
struct CheckedLoader {
  std::string name;
  DataLoader loader;
};

struct DataCheckOptions {
  std::optional<int64_t> classes = {};  ///< that the model tells apart
  int64_t most = int64_t{1} << 40;      ///< samples of each loader that are read
};

struct DataCheck {
  std::vector<int64_t> samples = {};       ///< that were read of each loader
  std::vector<DataFinding> findings = {};  ///< in the order of the loaders
};

/// Reads the data of every loader and looks for what is wrong with it. The first loader is the one
/// that trains: the others take what it learnt, and its columns are looked at. Samples are the same
/// when all their tensors are but the label and the weight; pictures when their files are.
DataCheck check_data(const std::vector<CheckedLoader>& loaders, const DataCheckOptions& options);

}  // namespace rondo
