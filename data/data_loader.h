#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/factory.h"
#include "core/log.h"
#include "core/options.h"
#include "core/tensor_map.h"
#include "data/dataset.h"
#include "data/rank_range.h"

namespace rondo {

struct LoaderOptions {
  int64_t batch_size = 1;  ///< samples of a batch, >= 1
  bool shuffle = false;    ///< a new order in each epoch, from seed and epoch alone
  bool drop_last = false;  ///< drop a short last batch
  std::optional<uint64_t> shuffle_seed = {};  ///< of the order; absent: the run's seed
  /// Batches that a thread makes ahead; 0: made on demand. Absent: 8, or for small batches as many
  /// as fit in 1 MiB, up to 64. The thread reclaims consumed batches when it makes the next one. In
  /// training it also works ahead into the next epoch if the data set is indexable.
  std::optional<int64_t> prefetch = {};
  /// Allowed lengths of batches whose samples differ in length, ascending, each >= 1. A batch is
  /// padded to the smallest length that fits all its samples, so steps are recorded for these
  /// lengths only. Empty: samples must have the same shapes.
  std::vector<int64_t> pad_to = {};
  std::vector<std::string> pad = {};  ///< tensors whose first dimension is padded with zeros
  /// Those of `pad` that are padded with -100 instead, which losses and metrics ignore.
  std::vector<std::string> pad_labels = {"label", "targets"};
  /// Tensors that every micro-batch gets whole; the others are split along the first dimension.
  std::vector<std::string> not_cut = {};
  /// Groups samples by padded length, so that all samples of a batch are padded to the same one. A
  /// pass then has one batch shape per length, and a shorter last batch of each.
  bool buckets = false;
  /// Instead of batch_size: the most tokens in a batch, as samples times padded length. Implies
  /// `buckets`; every length of pad_to must fit.
  std::optional<int64_t> max_tokens = {};
  /// The tensor with each sample's weight: samples are drawn with a probability proportional to it,
  /// some several times in a pass and others never. "": not drawn. Excludes shuffle, buckets and
  /// balance_by.
  std::string draw_by = {};
  /// The tensor with each sample's class: samples are drawn so that all classes come equally often.
  std::string balance_by = {};
  /// Samples in a drawn pass; absent: as many as the data has.
  std::optional<int64_t> draws = {};
  std::optional<int64_t> first_samples = {};  ///< uses only so many of the data, >= 1; absent: all
  int64_t workers = 1;                        ///< threads that make batches ahead, >= 1
};

/// The keys of LoaderOptions, which share a table with those of the data set in a config.
KeyTable<LoaderOptions> loader_keys();

/// The position in a pass over the data, counting consumed (not prefetched) samples.
struct LoaderPosition {
  int64_t epoch = 0;
  int64_t sample = 0;  ///< samples of this epoch that were consumed
};

/// Batches from a position on, of one pass or of consecutive passes. The caller owns it and uses it
/// from one thread; its own thread, if any, ends with it. Keeps the data set alive.
class BatchStream {
 public:
  virtual ~BatchStream() = default;

  /// The next batch; nothing at the end of a pass.
  /// \throws DataError  nesting what the data set threw, on the loader's thread too. It comes after
  ///                    the batches before the failure; the stream is unusable then
  virtual std::optional<Batch> next() = 0;

  /// The position after the last batch that `next` returned: a stream that starts there continues
  /// with the next batch.
  virtual LoaderPosition position() const = 0;
};

/// A data set and how it is batched: a value whose copies are the same loader. Any thread may use
/// it.
class DataLoader {
 public:
  /// \throws UsageError  when an option is out of its range
  explicit DataLoader(Factory<DataSource> source, LoaderOptions options = {});

  /// \param label  scope of its metrics; `validate_<k>` without one
  DataLoader(std::string label, Factory<DataSource> source, LoaderOptions options = {});

  /// The same over the first `samples` samples, or all if there are fewer. Builds the data set,
  /// which the two loaders share.
  /// \param samples  >= 1
  /// \throws UsageError  for an iterable data set
  DataLoader first(int64_t samples) const;

  /// The same loader without `shuffle`, `drop_last`, draws and buckets: every sample, in data
  /// order.
  DataLoader in_order() const;

  /// The same loader with `times` as many samples in a batch, or tokens where it counts those.
  DataLoader in_larger_batches(int64_t times) const;

  const std::string& label() const;

  /// The name in messages: `loader "train" of CsvTable`.
  const std::string& name() const;

  const LoaderOptions& options() const { return options_; }

  /// Batches of a pass from `from` on, if known; 0 beyond its end. Builds the data set on first
  /// use. Every pass has the same number.
  /// \param run_seed  as for `stream`; it matters within a pass of buckets
  std::optional<int64_t> size(const LoaderPosition& from = {}, uint64_t run_seed = 0) const;

  /// Samples in a pass, if known.
  std::optional<int64_t> samples() const;

  /// Samples in the last batch of a pass, if known: the remainder, or `batch_size` when there is
  /// none or it is dropped. Unknown with buckets.
  std::optional<int64_t> last_size() const;

  /// Loads what `IterableDataset::save_state` returned into a data set that keeps its own state.
  /// \param is_in_pass  the next pass is the rest of the saved one, not a new one
  /// \throws CheckpointError  for another data set
  void load_state(const StateDict& state, bool is_in_pass) const;

  /// Whether its data set keeps its own state.
  bool has_state() const;

  /// The data set, built on first use; lives as long as a copy of the loader.
  /// \throws DataError  nesting the cause, when it cannot be built; a later call tries again
  const DataSource& source() const;

  /// Whether the data set is built.
  bool is_built() const;

  /// What a model needs to know about the data: `use<TableMlp>(loader.facts())`.
  DatasetFacts facts() const { return source().facts(); }

  /// What the data set learnt; see DataSource::fitted.
  StateDict fitted() const { return source().fitted(); }

  /// Passes what another data set learnt to this one. Not while samples are read.
  /// \throws DataError  nesting the cause, when the data does not match it
  void take_fitted(const StateDict& fitted) const;

  /// How the data set read its files: once for all copies of the loader, then nothing.
  DatasetNotes take_notes() const;

  /// One pass from `position` on. An iterable data set is read from its start up to there, and has
  /// one pass at a time: a new one ends the previous one, whose `next` then throws UsageError.
  /// \param run_seed  seed of the shuffle when the options have none
  /// \param reads     gives only every batch whose number, counted from `position`, modulo `all` is
  ///                  one of the range; an indexable data set does not make the others
  /// \throws DataError   when the position is beyond the data
  /// \throws UsageError  when `shuffle` is set for an iterable data set
  std::unique_ptr<BatchStream> stream(const LoaderPosition& position,
                                      uint64_t run_seed,
                                      const RankRange& reads = {}) const;

  /// Endless passes from `position` on, as `stream` makes them: `next` returns nothing at the end
  /// of each and then starts the next epoch. One thread makes all batches. For an indexable data
  /// set it also prefetches the first batches of the next epoch, so that training does not wait
  /// between epochs. Destroying the stream waits for the batch that is being made. A position
  /// beyond the data, such as after the data set shrank, is the end of its pass.
  /// \param reads  of each batch, gives only the parts of the range (`begin_of_part`); all of it
  ///               where `reads_parts` is false, and of a batch with fewer samples than parts.
  ///               Positions count all samples of a batch
  std::unique_ptr<BatchStream> epochs(const LoaderPosition& position,
                                      uint64_t run_seed,
                                      const RankRange& reads = {}) const;

  /// Whether a part of a batch can be made without the rest: samples are indexable and neither
  /// padded to each other nor given whole (`not_cut`).
  bool reads_parts() const;

  /// The index in the data set of the sample at `position`; nothing for an iterable one or beyond
  /// the data.
  /// \param run_seed  as for `stream`
  std::optional<int64_t> number_of(const LoaderPosition& position, uint64_t run_seed) const;

  /// True once, when the data set drew from LibTorch's default generator for the first batch of a
  /// pass: its samples then depend on when they are read.
  bool take_random_draw() const;

  /// True for copies of one loader.
  bool is_same(const DataLoader& other) const { return shared_ == other.shared_; }

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // copies are one loader: the data set is built and held once
  LoaderOptions options_;
};

using Loaders = std::vector<DataLoader>;

/// Advice about a loader that kept a run waiting: its name, the share of the time, and what would
/// help. Nothing if the share is small or the time too short to judge.
/// \param waited  seconds that the run waited for batches
/// \param ran     seconds that it took, including the waiting
std::optional<std::string> slow_loader_advice(const DataLoader& loader, double waited, double ran);

/// Why a whole pass over the loader's data yields no batch, and what to do: the last part of an
/// error or a warning.
std::string why_no_batch(const DataLoader& loader);

/// Logs once how the data set read its files.
void tell_notes(const TextLog& log, const DataLoader& loader);

/// Warns once about a data set that draws from LibTorch's default generator.
void warn_of_random_numbers(const TextLog& log, const DataLoader& loader);

/// \throws UsageError  when a label occurs twice: the metrics would have the same names
void require_distinct_labels(const Loaders& loaders);

}  // namespace rondo
