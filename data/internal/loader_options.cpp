#include "data/internal/loader_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "core/error.h"
#include "core/require.h"

namespace rondo {

namespace {

void require_padding(const std::string& loader, const LoaderOptions& options) {
  const std::vector<int64_t>& lengths = options.pad_to;
  const bool is_ascending =
      std::adjacent_find(lengths.begin(), lengths.end(), std::greater_equal<>()) == lengths.end();
  detail::require(lengths.empty() || (lengths.front() >= 1 && is_ascending),
                  loader + ": pad_to",
                  "lengths >= 1, each longer than the one before it",
                  fmt::format("{}", lengths));
  if (lengths.empty() != options.pad.empty()) {
    throw UsageError(loader +
                     ": pad_to, the lengths, and pad, the names of the tensors to be padded, need "
                     "each other; give both or none");
  }
}

void require_buckets(const std::string& loader, const LoaderOptions& options) {
  if (options.max_tokens) {
    const int64_t least = options.pad_to.empty() ? 1 : options.pad_to.back();
    detail::require(*options.max_tokens >= least,
                    loader + ": max_tokens",
                    fmt::format(">= {}, the longest of pad_to", least),
                    *options.max_tokens);
    if (options.batch_size != 1) {
      throw UsageError(loader + ": max_tokens sizes batches instead of batch_size; give one");
    }
  }
  if ((options.buckets || options.max_tokens) && options.pad_to.empty()) {
    throw UsageError(loader +
                     ": buckets and max_tokens need pad_to, the lengths of batches, and pad, the "
                     "tensors that are padded");
  }
}

void require_drawing(const std::string& loader, const LoaderOptions& options) {
  const bool draws = !options.draw_by.empty() || !options.balance_by.empty();
  if (options.draws) {
    detail::require(*options.draws >= 1, loader + ": draws", ">= 1", *options.draws);
    if (!draws) {
      throw UsageError(loader + ": draws needs draw_by or balance_by");
    }
  }
  if (!options.draw_by.empty() && !options.balance_by.empty()) {
    throw UsageError(loader + ": draw_by and balance_by exclude each other; give one");
  }
  if (draws && (options.shuffle || options.buckets || options.max_tokens)) {
    throw UsageError(loader +
                     ": drawn samples (draw_by, balance_by) are in random order and not in "
                     "buckets; remove shuffle, buckets and max_tokens");
  }
}

void require_threads(const std::string& loader, const LoaderOptions& options) {
  const int64_t prefetch = options.prefetch.value_or(detail::kUsualPrefetch);
  detail::require(prefetch >= 0, loader + ": prefetch", ">= 0", prefetch);
  detail::require(options.workers >= 1, loader + ": workers", ">= 1", options.workers);
  if (options.workers > 1 && prefetch == 0) {
    throw UsageError(loader + ": several workers make batches ahead; leave out prefetch = 0");
  }
}

}  // namespace

void detail::check_options(const std::string& loader, const LoaderOptions& options) {
  detail::require(options.batch_size >= 1, loader + ": batch_size", ">= 1", options.batch_size);
  require_padding(loader, options);
  require_buckets(loader, options);
  require_drawing(loader, options);
  require_threads(loader, options);
  const int64_t first = options.first_samples.value_or(1);
  detail::require(first >= 1, loader + ": first_samples", ">= 1", first);
}

const char* detail::needs_index(const LoaderOptions& options) {
  return options.shuffle                                           ? "shuffle"
         : options.buckets || options.max_tokens                   ? "a loader with buckets"
         : !options.draw_by.empty() || !options.balance_by.empty() ? "drawing samples"
         : options.first_samples                                   ? "first_samples"
         : options.workers > 1                                     ? "a loader with several workers"
                                                                   : nullptr;
}

KeyTable<LoaderOptions> loader_keys() {
  KeyTable<LoaderOptions> keys;
  keys.key("batch_size", &LoaderOptions::batch_size, at_least(1), "samples of a batch")
      .key("shuffle", &LoaderOptions::shuffle, "whether each epoch has a new order")
      .key("drop_last", &LoaderOptions::drop_last, "leave a short last batch out")
      .key("shuffle_seed",
           &LoaderOptions::shuffle_seed,
           "seed of the shuffled order; the run's when absent")
      .key("prefetch",
           &LoaderOptions::prefetch,
           at_least(0),
           "batches made ahead by a thread, 0: made when asked for; when absent 8, more of small "
           "ones")
      .key("pad_to",
           &LoaderOptions::pad_to,
           each(0, at_least(1)),
           "lengths that batches of samples of several lengths are padded to, ascending")
      .key("pad", &LoaderOptions::pad, "tensors whose first dimension is padded")
      .key("not_cut",
           &LoaderOptions::not_cut,
           "tensors that loop.device_train_microbatch_size leaves whole")
      .key("pad_labels",
           &LoaderOptions::pad_labels,
           "those of them that get -100, which losses and metrics leave out, instead of 0")
      .key("buckets",
           &LoaderOptions::buckets,
           "make each batch of samples that are padded to the same length of pad_to")
      .key("max_tokens",
           &LoaderOptions::max_tokens,
           at_least(1),
           "samples of a batch times their padded length at most, instead of batch_size")
      .key("draw_by",
           &LoaderOptions::draw_by,
           "tensor with the weight of a sample: samples are drawn with chances in its proportion")
      .key(
          "balance_by",
          &LoaderOptions::balance_by,
          "tensor with the class of a sample: samples are drawn so that classes come equally often")
      .key("draws",
           &LoaderOptions::draws,
           at_least(1),
           "samples of a pass that is drawn; as many as the data has when absent")
      .key("first_samples",
           &LoaderOptions::first_samples,
           at_least(1),
           "only the first so many samples of the data; all when absent")
      .key("workers",
           &LoaderOptions::workers,
           at_least(1),
           "threads that make batches ahead, in the same order");
  return keys;
}

}  // namespace rondo
