#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "data/data_loader.h"
#include "data/dataset.h"
#include "data/internal/padding.h"
#include "data/internal/pass_order.h"
#include "data/internal/random_draw.h"

namespace rondo::detail {

/// What one pass over a data set is to be.
struct Pass {
  std::string loader;  ///< how messages call the loader
  OrderRule order;  ///< an iterable data set has its own: it takes batch_size and drop_last alone
  LoaderPosition from;
  bool may_be_beyond = false;  ///< a position beyond the data is the end of the pass, no error
  Padding padding;
  std::shared_ptr<RandomDraw> random_draw;
  RankRange reads = {};       ///< of the ranks that share the batches out
  bool cuts_batches = false;  ///< `reads` are parts of each batch; false: whole batches
};

/// Batches whose samples are chosen one batch after the other, by one thread at a time, and which
/// any thread can then make.
class PlannedStream : public BatchStream {
 public:
  using Make = std::function<Batch()>;

  /// Chooses the next batch; nothing at the end of a pass. `position` is behind it then.
  virtual std::optional<Make> plan() = 0;

  /// What was thrown once is thrown by every later call.
  std::optional<Batch> next() final;

 private:
  std::exception_ptr error_;
};

/// An iterable data set with what keeps its passes apart, of which only the latest may read.
struct IterableSource {
  std::shared_ptr<IterableDataset> data;
  std::mutex mutex;            // guards what follows and every call of `*data`
  int64_t passes_started = 0;  // the number of the latest pass
  bool is_in_pass = false;     // its state was loaded: the next pass goes on, without `start`
};

/// The samples, whose number is known, in the order of the pass, made by the thread that asks.
/// \throws DataError  when the pass starts beyond the data
std::unique_ptr<PlannedStream> stream_of(std::shared_ptr<const Dataset> data, Pass pass);

/// The samples as they come, made by the thread that asks.
std::unique_ptr<PlannedStream> stream_of(std::shared_ptr<IterableSource> source, Pass pass);

/// The passes that `pass_at` makes, from a position on and then of each epoch; nothing between two.
/// The first is made here, the others when their first batch is asked for.
std::unique_ptr<PlannedStream> passes(
    std::function<std::unique_ptr<PlannedStream>(const LoaderPosition&)> pass_at,
    const LoaderPosition& from);

/// What `source` makes, with large tensors in one BatchMemory, from the first batch to the last.
std::unique_ptr<BatchStream> in_batch_memory(std::unique_ptr<BatchStream> source);

/// What a loader's thread does at the end of a pass.
enum class PassEnd {
  Rest,  ///< it waits until something behind the end is asked for
  GoOn,  ///< it makes the next pass's batches ahead
};

/// Lets a thread ask `source` for at most `depth` batches before they are wanted.
/// \param depth  >= 1; absent: what LoaderOptions::prefetch says
std::unique_ptr<BatchStream> prefetched(std::unique_ptr<BatchStream> source,
                                        std::optional<int64_t> depth,
                                        PassEnd pass_end);

/// Lets several threads make the batches of `source`, which come out in its order.
/// \param workers  >= 1
/// \param depth    batches that are made or in the making, >= 1
std::unique_ptr<BatchStream> made_by_workers(std::unique_ptr<PlannedStream> source,
                                             int64_t workers,
                                             int64_t depth,
                                             PassEnd pass_end);

}  // namespace rondo::detail
