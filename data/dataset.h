#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/dataset_facts.h"
#include "core/factory.h"
#include "core/state_dict.h"
#include "core/tensor_map.h"

namespace rondo {

/// Messages about how a data set read its files, logged once.
struct DatasetNotes {
  std::string summary = {};
  std::vector<std::string> warnings = {};
};

/// Where samples come from: a Dataset or an IterableDataset.
class DataSource {
 public:
  using Component = DataSource;
  using Options = NoOptions;

  DataSource() = default;
  DataSource(const DataSource&) = delete;
  DataSource& operator=(const DataSource&) = delete;
  virtual ~DataSource() = default;

  /// What a model for this data needs to know.
  virtual DatasetFacts facts() const { return {}; }

  /// What it learnt from the training data, such as means and vocabularies; empty when nothing.
  /// Saved in checkpoints as `dataloader/<label>/fitted`.
  virtual StateDict fitted() const { return {}; }

  /// Takes over what another data set, or that of a checkpoint, learnt. Not while samples are read.
  /// \throws DataError        when the data does not match it
  /// \throws CheckpointError  when it is not what `fitted` returns
  virtual void take_fitted(const StateDict&) {}

  virtual DatasetNotes notes() const { return {}; }

  /// Counters by name, such as dropped samples; logged as training metrics. Any thread may call it.
  virtual std::vector<std::pair<std::string, double>> counts() const { return {}; }
};

/// A known number of samples, accessed by index. Loader threads call it, several at once when
/// several passes run: `get` must be a pure function of the index, and draw random numbers from a
/// KeyedRandom, never from the global generator. Tensor operations on more than 32,768 elements
/// start LibTorch's own threads for each calling thread; plain loops do not.
class Dataset : public DataSource {
 public:
  /// Number of samples.
  virtual int64_t size() const = 0;

  /// \param index  in [0, size())
  virtual Sample get(int64_t index) const = 0;

  /// The name of a sample in predictions.
  virtual std::string sample_name(int64_t index) const { return std::to_string(index); }

  /// The samples of `indices` as one batch: each tensor stacked along a new first dimension.
  /// Override it if reading many samples at once is cheaper, and make the tensors with
  /// `batch_tensor` (data/batch_memory.h).
  /// \throws DataError  naming the index and nesting what `get` threw
  virtual Batch get_batch(const std::vector<int64_t>& indices) const;

  /// The same in pass `epoch`, for a data set with random augmentation: it draws from a KeyedRandom
  /// of seed, epoch and index. By default all passes are the same.
  virtual Batch get_epoch_batch(const std::vector<int64_t>& indices, int64_t /*epoch*/) const {
    return get_batch(indices);
  }

  /// Tensor `name` of every sample, which must be one number: loaders balance or weight samples by
  /// it. By default reads every whole sample; override it where there is a cheaper way.
  /// \throws DataError  naming a sample whose tensor is missing or not one number
  virtual std::vector<double> numbers(const std::string& name) const;

  /// The first dimension of the longest of the tensors `names`, for every sample. By default reads
  /// every whole sample; override it where there is a cheaper way.
  /// \throws DataError  naming a sample that lacks one of them
  virtual std::vector<int64_t> lengths(const std::vector<std::string>& names) const;
};

/// Samples in sequence. One loader thread at a time calls it. A pass must yield the same samples
/// each time it starts, or a resumed run continues with others; a data set that keeps its own state
/// need not.
class IterableDataset : public DataSource {
 public:
  /// Starts pass `epoch` at its first sample.
  virtual void start(int64_t epoch) = 0;

  /// The next sample of the pass; nothing at its end.
  virtual std::optional<Sample> next() = 0;

  /// Number of samples in a pass, if known.
  virtual std::optional<int64_t> size() const { return std::nullopt; }

  /// True if the data set keeps its own state. A resumed run then calls `load_state` and continues
  /// with `next`; other data sets are read again from `start`. Its batches are made on demand,
  /// never ahead, so that `save_state` matches what the run has seen.
  virtual bool has_state() const { return false; }

  /// The position in the pass, for a checkpoint.
  virtual StateDict save_state() const { return {}; }

  /// Continues from there. \throws CheckpointError  when it is not what `save_state` returns
  virtual void load_state(const StateDict&) {}
};

/// Stacks samples along a new first dimension. No samples give an empty batch.
/// \throws DataError  when they do not have the same names, shapes and dtypes
Batch stack(const std::vector<Sample>& samples);

}  // namespace rondo
