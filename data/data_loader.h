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

namespace rondo {

struct LoaderOptions {
  int64_t batch_size = 1;  ///< samples of a batch, >= 1
  bool shuffle = false;    ///< another order in each epoch, from seed and epoch alone
  bool drop_last = false;  ///< leave a short last batch out
  std::optional<uint64_t> shuffle_seed = {};  ///< of the order; the run's seed when absent
  /// Batches made ahead by a thread; 0: made when asked for. Absent: 8, and as many of small ones
  /// as 1 MiB holds, up to 64. The thread takes back what was consumed when it makes the next
  /// batch. In training they may be those of the next epoch, where the data set is reached by
  /// index.
  std::optional<int64_t> prefetch = {};
  /// Lengths that batches of samples of several lengths may have, ascending, each >= 1: their
  /// tensors are padded to the least one that all samples of the batch fit into, so that a step is
  /// recorded for each of these lengths alone. Empty: samples must have the same shapes.
  std::vector<int64_t> pad_to = {};
  std::vector<std::string> pad = {};  ///< tensors whose first dimension is padded, with zeros
  /// Those of `pad` that get -100 instead: losses and metrics leave it out.
  std::vector<std::string> pad_labels = {"label", "targets"};
  /// Tensors that each micro-batch of a batch gets whole; the others are cut along the first
  /// dimension.
  std::vector<std::string> not_cut = {};
  /// Makes each batch of samples that are padded to the same of these lengths. A pass then has as
  /// many shapes of batches as lengths, and shorter last batches of each.
  bool buckets = false;
  /// Instead of batch_size: samples of a batch times the length that they are padded to, at most.
  /// Implies `buckets`; every length of pad_to must fit.
  std::optional<int64_t> max_tokens = {};
  /// Samples are drawn, some several times in a pass, others never, each with the chance that this
  /// tensor, its weight, says. "" for none. Excludes shuffle, buckets and balance_by.
  std::string draw_by = {};
  /// Samples are drawn so that each value of this tensor, a class, comes equally often.
  std::string balance_by = {};
  /// Samples of a pass that is drawn; as many as the data has when absent.
  std::optional<int64_t> draws = {};
  std::optional<int64_t> first_samples = {};  ///< of the data, >= 1; all when absent
  int64_t workers = 1;                        ///< threads that make batches ahead, >= 1
};

/// The keys of LoaderOptions, which stand beside those of the data set in a config.
KeyTable<LoaderOptions> loader_keys();

/// Where a pass over the data stands, in what was consumed (not prefetched).
struct LoaderPosition {
  int64_t epoch = 0;
  int64_t sample = 0;  ///< samples of this epoch that were consumed
};

/// Batches from a position on, of one pass or of one after the other. Owned by who iterates, used
/// by one thread; its own thread, where it has one, ends with it. Keeps the data set alive.
class BatchStream {
 public:
  virtual ~BatchStream() = default;

  /// The next batch; nothing at the end of a pass.
  /// \throws DataError  nesting what the data set threw, also on the loader's thread; after the
  ///                    batches that came before it, and the stream is of no use then
  virtual std::optional<Batch> next() = 0;

  /// Behind the last batch that `next` returned: a stream that starts there goes on with the next.
  virtual LoaderPosition position() const = 0;
};

/// A data set with the way it is batched: a value whose copies are the same loader. Any thread may
/// use it.
class DataLoader {
 public:
  /// \throws UsageError  when an option is out of its range
  explicit DataLoader(Factory<DataSource> source, LoaderOptions options = {});

  /// \param label  scope of its metrics; `validate_<k>` without one
  DataLoader(std::string label, Factory<DataSource> source, LoaderOptions options = {});

  /// The same over the first `samples` samples alone, or all where there are less. The two share
  /// the data set, which is built.
  /// \param samples  >= 1
  /// \throws UsageError  for an iterable data set
  DataLoader first(int64_t samples) const;

  /// The same loader without `shuffle`, `drop_last`, draws and buckets: every sample, in the order
  /// of the data.
  DataLoader in_order() const;

  const std::string& label() const;

  /// As messages call it: `loader "train" of CsvTable`.
  const std::string& name() const;

  const LoaderOptions& options() const { return options_; }

  /// Batches of a pass from `from` on, where that is known; 0 beyond its end. Builds the data set
  /// on first use. Every pass has equally many.
  /// \param run_seed  as for `stream`; it matters within a pass of buckets
  std::optional<int64_t> size(const LoaderPosition& from = {}, uint64_t run_seed = 0) const;

  /// Samples of a pass, where they are known.
  std::optional<int64_t> samples() const;

  /// Samples of the last batch of a pass, where it is known: those that are left, if it has them,
  /// or `batch_size`. Not known of buckets.
  std::optional<int64_t> last_size() const;

  /// Gives a data set that keeps its own state what `IterableDataset::save_state` gave.
  /// \param is_in_pass  the next pass is what is left of the one that was saved, not a new one
  /// \throws CheckpointError  for another data set
  void load_state(const StateDict& state, bool is_in_pass) const;

  /// Whether its data set keeps its own state.
  bool has_state() const;

  /// The data set, built on first use; lives as long as a copy of the loader.
  /// \throws DataError  nesting the cause, when it cannot be built; a later call tries again
  const DataSource& source() const;

  /// Whether the data set is built.
  bool is_built() const;

  /// What the data set knows that a model needs: `use<TableMlp>(loader.facts())`.
  DatasetFacts facts() const { return source().facts(); }

  /// What the data set learnt; see DataSource::fitted.
  StateDict fitted() const { return source().fitted(); }

  /// Gives the data set what another one learnt. Not while samples are taken.
  /// \throws DataError  nesting the cause, when the data does not go with it
  void take_fitted(const StateDict& fitted) const;

  /// How the data set read its files: once for all copies of the loader, then nothing.
  DatasetNotes take_notes() const;

  /// One pass from `position` on. An iterable data set is read over up to there, and has one pass
  /// at a time: a new one ends the one before it, whose `next` then throws UsageError.
  /// \param run_seed  seed of the shuffle when the options have none
  /// \throws DataError   when the position lies beyond the data
  /// \throws UsageError  when an iterable data set is to be shuffled
  std::unique_ptr<BatchStream> stream(const LoaderPosition& position, uint64_t run_seed) const;

  /// Endless passes from `position` on, as `stream` makes them: `next` gives nothing at the end of
  /// each and then begins the next epoch. The same thread makes their batches; of a data set that
  /// is reached by index also the first ones of an epoch ahead, so that training does not wait
  /// where one epoch ends and another begins. Destroying the stream waits for the batch that is
  /// being made. A position beyond the data, as a data set that shrank has it, is the end of its
  /// pass.
  std::unique_ptr<BatchStream> epochs(const LoaderPosition& position, uint64_t run_seed) const;

  /// The number in the data set of the sample at `position`; nothing for an iterable one, or beyond
  /// the data.
  /// \param run_seed  as for `stream`
  std::optional<int64_t> number_of(const LoaderPosition& position, uint64_t run_seed) const;

  /// True once, when the data set drew from LibTorch's default generator for the first batch of a
  /// pass: what it gives then depends on when it is asked.
  bool take_random_draw() const;

  /// True for copies of one loader.
  bool is_same(const DataLoader& other) const { return shared_ == other.shared_; }

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // copies are one loader: the data set is built and held once
  LoaderOptions options_;
};

using Loaders = std::vector<DataLoader>;

/// What to do about a loader whose batches a run waited for: its name, the share of the time, and
/// what would help. Nothing where the share is small or the time too short to tell.
/// \param waited  seconds that the run waited for batches
/// \param ran     seconds that it took, the waiting included
std::optional<std::string> slow_loader_advice(const DataLoader& loader, double waited, double ran);

/// Why a whole pass over the loader's data yields no batch, and what to do: the end of an error or
/// a warning.
std::string why_no_batch(const DataLoader& loader);

/// Logs once how the data set read its files.
void tell_notes(const TextLog& log, const DataLoader& loader);

/// Warns once of a data set that draws from LibTorch's default generator.
void warn_of_random_numbers(const TextLog& log, const DataLoader& loader);

/// \throws UsageError  when a label occurs twice: metrics of the two would have the same names
void require_distinct_labels(const Loaders& loaders);

}  // namespace rondo
