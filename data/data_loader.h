#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/factory.h"
#include "core/tensor_map.h"
#include "data/dataset.h"

namespace rondo {

struct LoaderOptions {
  int64_t batch_size = 1;        ///< samples of a batch, >= 1
  bool shuffle = false;          ///< another order in each epoch, a function of seed and epoch
  bool drop_last = false;        ///< leave a short last batch out
  std::optional<uint64_t> seed;  ///< of the shuffle; the run's when absent
  int64_t prefetch = 2;          ///< batches made ahead by a thread; 0: made when asked for
};

/// Where a pass over the data stands, in what was consumed (not prefetched).
struct LoaderPosition {
  int64_t epoch = 0;
  int64_t sample = 0;  ///< samples of this epoch that were consumed
};

/// The batches of one pass, from a position on. Owned by who iterates; its thread ends with it.
class BatchStream {
 public:
  virtual ~BatchStream() = default;

  /// The next batch; nothing at the end of the pass. Rethrows what the loader's thread threw.
  virtual std::optional<Batch> next() = 0;
};

/// A data set with the way it is batched: a value whose copies are the same loader.
class DataLoader {
 public:
  DataLoader(Factory<DataSource> source, LoaderOptions options = {});

  /// \param label  scope of its metrics; `validate_<k>` without one
  DataLoader(std::string label, Factory<DataSource> source, LoaderOptions options = {});

  const std::string& label() const;
  const LoaderOptions& options() const;

  /// Batches of a pass, where it is known. Builds the data set on first use.
  std::optional<int64_t> size() const;

  /// One pass from `position` on.
  /// \param run_seed  seed of the shuffle when the options have none
  std::unique_ptr<BatchStream> stream(const LoaderPosition& position, uint64_t run_seed) const;

  /// True for copies of one loader.
  bool is_same(const DataLoader& other) const { return shared_ == other.shared_; }

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // copies are one loader: the data set is built and held once
};

using Loaders = std::vector<DataLoader>;

}  // namespace rondo
