#include "data/data_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/require.h"
#include "data/internal/batch_streams.h"

namespace rondo {

namespace {

std::unique_ptr<BatchStream> made_ahead(std::unique_ptr<BatchStream> stream,
                                        const LoaderOptions& options,
                                        detail::PassEnd pass_end) {
  stream = detail::in_batch_memory(std::move(stream));
  return options.prefetch == 0 ? std::move(stream)
                               : detail::prefetched(std::move(stream), options.prefetch, pass_end);
}

}  // namespace

struct DataLoader::Shared {
  std::string label;
  Factory<DataSource> factory;
  bool shuffles = false;
  std::string name;  // in messages

  std::mutex mutex;  // guards the building of what follows; it never changes afterwards
  std::shared_ptr<DataSource> source;      // shared with the streams, which may outlive the loader
  std::shared_ptr<const Dataset> dataset;  // null for an iterable one
  std::shared_ptr<detail::IterableSource> iterable;  // null for an indexed one
  std::optional<int64_t> samples;

  void build();
  void adopt(std::shared_ptr<DataSource> built);
};

void DataLoader::Shared::build() {
  const std::lock_guard lock(mutex);
  if (source) {
    return;
  }
  try {
    adopt(factory.make());
  } catch (...) {
    std::throw_with_nested(
        DataError(fmt::format("{}: cannot build its data set {}", name, factory.name())));
  }
}

void DataLoader::Shared::adopt(std::shared_ptr<DataSource> built) {
  if (auto indexed = std::dynamic_pointer_cast<const Dataset>(built)) {
    samples = indexed->size();
    detail::require(*samples >= 0, "size()", ">= 0", *samples);
    dataset = std::move(indexed);
  } else if (auto sequential = std::dynamic_pointer_cast<IterableDataset>(built)) {
    if (shuffles) {
      throw UsageError("shuffle needs a data set that is reached by index; this one is iterable");
    }
    samples = sequential->size();
    iterable = std::make_shared<detail::IterableSource>();
    iterable->data = std::move(sequential);
  } else {
    throw UsageError("a data set derives from Dataset or IterableDataset");
  }
  source = std::move(built);
}

DataLoader::DataLoader(Factory<DataSource> source, LoaderOptions options)
    : DataLoader("", std::move(source), std::move(options)) {}

DataLoader::DataLoader(std::string label, Factory<DataSource> source, LoaderOptions options)
    : shared_(std::make_shared<Shared>()), options_(std::move(options)) {
  shared_->name =
      label.empty() ? "loader of " + source.name() : fmt::format("loader \"{}\"", label);
  if (!source) {
    throw UsageError(shared_->name + ": it has no data set");
  }
  detail::require(
      options_.batch_size >= 1, shared_->name + ": batch_size", ">= 1", options_.batch_size);
  const int64_t prefetch = options_.prefetch.value_or(0);
  detail::require(prefetch >= 0, shared_->name + ": prefetch", ">= 0", prefetch);
  shared_->label = std::move(label);
  shared_->factory = std::move(source);
  shared_->shuffles = options_.shuffle;
}

DataLoader DataLoader::first(int64_t samples) const {
  shared_->build();
  if (shared_->dataset == nullptr) {
    throw UsageError(shared_->name +
                     ": the first samples need a data set that is reached by index");
  }
  detail::require(samples >= 1, shared_->name + ": samples", ">= 1", samples);
  DataLoader part(shared_->label, shared_->factory, options_);
  part.shared_->source = shared_->source;
  part.shared_->dataset = shared_->dataset;
  part.shared_->samples = std::min(samples, *shared_->samples);
  return part;
}

DataLoader DataLoader::in_order() const {
  DataLoader all = *this;
  all.options_.shuffle = false;
  all.options_.drop_last = false;
  return all;
}

const std::string& DataLoader::label() const {
  return shared_->label;
}

const DataSource& DataLoader::source() const {
  shared_->build();
  return *shared_->source;
}

std::optional<int64_t> DataLoader::size() const {
  shared_->build();
  if (!shared_->samples) {
    return std::nullopt;
  }
  const int64_t batch_size = options().batch_size;
  const bool has_short_batch = *shared_->samples % batch_size != 0 && !options().drop_last;
  return *shared_->samples / batch_size + (has_short_batch ? 1 : 0);
}

std::optional<int64_t> DataLoader::last_size() const {
  shared_->build();
  if (!shared_->samples) {
    return std::nullopt;
  }
  const int64_t left = *shared_->samples % options().batch_size;
  return left == 0 || options().drop_last ? options().batch_size : left;
}

std::unique_ptr<BatchStream> DataLoader::stream(const LoaderPosition& position,
                                                uint64_t run_seed) const {
  return made_ahead(pass(position, run_seed), options(), detail::PassEnd::Rest);
}

std::unique_ptr<BatchStream> DataLoader::epochs(const LoaderPosition& position,
                                                uint64_t run_seed) const {
  const auto pass_at = [loader = *this, run_seed](const LoaderPosition& from) {
    return loader.pass(from, run_seed);
  };
  auto passes = detail::passes(pass_at, position);
  // Two passes over an iterable data set exclude each other, and a validation may come in between.
  return made_ahead(std::move(passes),
                    options(),
                    shared_->iterable ? detail::PassEnd::Rest : detail::PassEnd::GoOn);
}

std::unique_ptr<BatchStream> DataLoader::pass(const LoaderPosition& position,
                                              uint64_t run_seed) const {
  shared_->build();
  detail::require(position.epoch >= 0, shared_->name + ": epoch", ">= 0", position.epoch);
  detail::require(position.sample >= 0, shared_->name + ": sample", ">= 0", position.sample);
  const LoaderOptions& how = options();
  detail::Pass pass{shared_->name,
                    shared_->samples,
                    how.batch_size,
                    how.shuffle,
                    how.drop_last,
                    how.shuffle_seed.value_or(run_seed),
                    position};
  return shared_->dataset ? detail::stream_of(shared_->dataset, std::move(pass))
                          : detail::stream_of(shared_->iterable, std::move(pass));
}

void require_distinct_labels(const Loaders& loaders) {
  std::set<std::string> seen;
  for (const DataLoader& loader : loaders) {
    if (!loader.label().empty() && !seen.insert(loader.label()).second) {
      throw UsageError(
          fmt::format("two loaders have the label \"{}\", which is the name of their metrics: give "
                      "each its own",
                      loader.label()));
    }
  }
}

KeyTable<LoaderOptions> loader_keys() {
  KeyTable<LoaderOptions> keys;
  keys.key("batch_size", &LoaderOptions::batch_size, at_least(1), "samples of a batch")
      .key("shuffle", &LoaderOptions::shuffle, "whether each epoch has an order of its own")
      .key("drop_last", &LoaderOptions::drop_last, "leave a short last batch out")
      .key("shuffle_seed",
           &LoaderOptions::shuffle_seed,
           "seed of the shuffled order; the run's when absent")
      .key("prefetch",
           &LoaderOptions::prefetch,
           at_least(0),
           "batches made ahead by a thread, 0: made when asked for; when absent 8, more of small "
           "ones");
  return keys;
}

}  // namespace rondo
