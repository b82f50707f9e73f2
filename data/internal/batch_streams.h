#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "data/data_loader.h"
#include "data/dataset.h"
#include "data/internal/padding.h"
#include "data/internal/random_draw.h"

namespace rondo::detail {

/// What one pass over a data set is to be.
struct Pass {
  std::string loader;              ///< how messages call the loader
  std::optional<int64_t> samples;  ///< those to be read are the first ones; as many as there are
  int64_t batch_size = 1;
  bool shuffle = false;
  bool drop_last = false;
  uint64_t seed = 0;
  LoaderPosition from;
  bool may_be_beyond = false;  ///< a position beyond the data is the end of the pass, no error
  Padding padding;
  std::shared_ptr<RandomDraw> random_draw;
};

/// An iterable data set with what keeps its passes apart, of which only the latest may read.
struct IterableSource {
  std::shared_ptr<IterableDataset> data;
  std::mutex mutex;            // guards what follows and every call of `*data`
  int64_t passes_started = 0;  // the number of the latest pass
};

/// The samples, whose number is known, in order or shuffled, made by the thread that asks.
/// \throws DataError  when the pass starts beyond the data
std::unique_ptr<BatchStream> stream_of(std::shared_ptr<const Dataset> data, Pass pass);

/// The samples as they come, made by the thread that asks.
std::unique_ptr<BatchStream> stream_of(std::shared_ptr<IterableSource> source, Pass pass);

/// The passes that `pass_at` makes, from a position on and then of each epoch; nothing between two.
/// The first is made here, the others when their first batch is asked for.
std::unique_ptr<BatchStream> passes(
    std::function<std::unique_ptr<BatchStream>(const LoaderPosition&)> pass_at,
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

}  // namespace rondo::detail
