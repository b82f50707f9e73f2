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

/// What a data set says once about how it read its files.
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

  /// What a model that is built for this data has to know.
  virtual DatasetFacts facts() const { return {}; }

  /// What it learnt from the data that trains, such as means and words; empty when nothing. Saved
  /// in checkpoints as `dataloader/<label>/fitted`.
  virtual StateDict fitted() const { return {}; }

  /// Takes what another data set, or that of a checkpoint, learnt. Not while samples are taken.
  /// \throws DataError        when the data does not go with it
  /// \throws CheckpointError  when it is not what `fitted` gives
  virtual void take_fitted(const StateDict&) {}

  virtual DatasetNotes notes() const { return {}; }

  /// What it counts while it gives samples, by name, such as samples that it dropped: logged as
  /// metrics of training. Any thread may ask.
  virtual std::vector<std::pair<std::string, double>> counts() const { return {}; }
};

/// Samples that are counted and reached by number. Called on loader threads, by several at once
/// when several passes run: `get` must be a pure function of the index, whose random numbers come
/// from a KeyedRandom and never from the global generator. Work on tensors of more than 32,768
/// elements starts LibTorch's own threads for the calling thread; plain loops do not.
class Dataset : public DataSource {
 public:
  /// Number of samples.
  virtual int64_t size() const = 0;

  /// \param index  in [0, size())
  virtual Sample get(int64_t index) const = 0;

  /// What predictions call a sample.
  virtual std::string sample_name(int64_t index) const { return std::to_string(index); }

  /// The samples of `indices` as one batch: each tensor stacked along a new first dimension.
  /// Override it where many samples at once are cheaper, with tensors that `batch_tensor`
  /// makes (data/batch_memory.h).
  /// \throws DataError  naming the index and nesting what `get` threw
  virtual Batch get_batch(const std::vector<int64_t>& indices) const;

  /// The same in pass `epoch`, for a data set that changes its samples by chance: it draws from a
  /// KeyedRandom of seed, epoch and index. By default every pass is alike.
  virtual Batch get_epoch_batch(const std::vector<int64_t>& indices, int64_t /*epoch*/) const {
    return get_batch(indices);
  }

  /// Tensor `name` of every sample, which is one number: what loaders balance or weight samples by.
  /// Override it where that takes less than every whole sample, as by default.
  /// \throws DataError  naming a sample that has no such tensor, or another kind of it
  virtual std::vector<double> numbers(const std::string& name) const;

  /// The first dimension of the longest of the tensors `names`, for every sample. Override it where
  /// that takes less than every whole sample, as by default.
  /// \throws DataError  naming a sample that lacks one of them
  virtual std::vector<int64_t> lengths(const std::vector<std::string>& names) const;
};

/// Samples that come one after the other. Called on a loader thread, never by two at once. A pass
/// must yield the same samples each time it is started, or a resumed run goes on with others; a
/// data set that keeps its own state gives that instead.
class IterableDataset : public DataSource {
 public:
  /// Begins pass `epoch` from its first sample.
  virtual void start(int64_t epoch) = 0;

  /// The next sample of the pass; nothing at its end.
  virtual std::optional<Sample> next() = 0;

  /// Number of samples of a pass, where it is known.
  virtual std::optional<int64_t> size() const { return std::nullopt; }

  /// True of one that knows where it stands. A resumed run then calls `load_state` and goes on with
  /// `next`, where others are read over from `start` on. Its batches are made when they are asked
  /// for, never ahead, so that `save_state` is what the run has seen.
  virtual bool has_state() const { return false; }

  /// Where it stands, for a checkpoint.
  virtual StateDict save_state() const { return {}; }

  /// Goes on from there. \throws CheckpointError  when it is not what `save_state` gives
  virtual void load_state(const StateDict&) {}
};

/// Stacks samples along a new first dimension. No samples give an empty batch.
/// \throws DataError  when they do not have the same names, shapes and dtypes
Batch stack(const std::vector<Sample>& samples);

}  // namespace rondo
