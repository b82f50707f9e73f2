#include "data/data_loader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <mutex>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/random.h"
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
  bool has_given_notes = false;
  std::shared_ptr<detail::RandomDraw> random_draw =
      std::make_shared<detail::RandomDraw>();  // shared with the streams

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
  shared_->name = "loader" + (label.empty() ? "" : fmt::format(" \"{}\"", label)) +
                  (source ? " of " + source.name() : "");
  if (!source) {
    throw UsageError(shared_->name + ": it has no data set");
  }
  detail::require(
      options_.batch_size >= 1, shared_->name + ": batch_size", ">= 1", options_.batch_size);
  require_padding(shared_->name, options_);
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

const std::string& DataLoader::name() const {
  return shared_->name;
}

const DataSource& DataLoader::source() const {
  shared_->build();
  return *shared_->source;
}

bool DataLoader::is_built() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->source != nullptr;
}

void DataLoader::take_fitted(const StateDict& fitted) const {
  shared_->build();
  try {
    shared_->source->take_fitted(fitted);
    shared_->samples = shared_->dataset ? shared_->dataset->size() : shared_->samples;
  } catch (...) {
    std::throw_with_nested(DataError(
        fmt::format("{}: its data does not go with what the training data taught", shared_->name)));
  }
}

DatasetNotes DataLoader::take_notes() const {
  shared_->build();
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->has_given_notes, true) ? DatasetNotes() : shared_->source->notes();
}

std::optional<int64_t> DataLoader::size(int64_t from) const {
  shared_->build();
  if (!shared_->samples) {
    return std::nullopt;
  }
  const int64_t left = std::max<int64_t>(*shared_->samples - from, 0);
  const int64_t batch_size = options().batch_size;
  const bool has_short_batch = left % batch_size != 0 && !options().drop_last;
  return left / batch_size + (has_short_batch ? 1 : 0);
}

std::optional<int64_t> DataLoader::last_size() const {
  shared_->build();
  if (!shared_->samples) {
    return std::nullopt;
  }
  const int64_t left = *shared_->samples % options().batch_size;
  return left == 0 || options().drop_last ? options().batch_size : left;
}

bool DataLoader::take_random_draw() const {
  return shared_->random_draw->take();
}

std::optional<int64_t> DataLoader::number_of(const LoaderPosition& position,
                                             uint64_t run_seed) const {
  shared_->build();
  if (!shared_->dataset || position.sample >= *shared_->samples) {
    return std::nullopt;
  }
  if (!options().shuffle) {
    return position.sample;
  }
  const uint64_t seed = options().shuffle_seed.value_or(run_seed);
  return permutation(*shared_->samples, seed, position.epoch)[static_cast<size_t>(position.sample)];
}

std::unique_ptr<BatchStream> DataLoader::stream(const LoaderPosition& position,
                                                uint64_t run_seed) const {
  return made_ahead(
      pass(position, run_seed, /*may_be_beyond=*/false), options(), detail::PassEnd::Rest);
}

std::unique_ptr<BatchStream> DataLoader::epochs(const LoaderPosition& position,
                                                uint64_t run_seed) const {
  const auto pass_at = [loader = *this, run_seed](const LoaderPosition& from) {
    return loader.pass(from, run_seed, /*may_be_beyond=*/true);
  };
  auto passes = detail::passes(pass_at, position);
  // Two passes over an iterable data set exclude each other, and a validation may come in between.
  return made_ahead(std::move(passes),
                    options(),
                    shared_->iterable ? detail::PassEnd::Rest : detail::PassEnd::GoOn);
}

std::unique_ptr<BatchStream> DataLoader::pass(const LoaderPosition& position,
                                              uint64_t run_seed,
                                              bool may_be_beyond) const {
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
                    position,
                    may_be_beyond,
                    {how.pad_to, how.pad, how.pad_labels},
                    shared_->random_draw};
  return shared_->dataset ? detail::stream_of(shared_->dataset, std::move(pass))
                          : detail::stream_of(shared_->iterable, std::move(pass));
}

std::string why_no_batch(const DataLoader& loader) {
  const LoaderOptions& options = loader.options();
  return options.drop_last ? fmt::format(
                                 "its data set has fewer than batch_size = {} samples, and "
                                 "drop_last leaves a short batch out; lower batch_size, or "
                                 "set drop_last = false",
                                 options.batch_size)
                           : "its data set has no sample";
}

void tell_notes(const TextLog& log, const DataLoader& loader) {
  const DatasetNotes notes = loader.take_notes();
  if (!notes.summary.empty()) {
    log.info(fmt::format("{}: {}", loader.name(), notes.summary));
  }
  for (const std::string& warning : notes.warnings) {
    log.warning(fmt::format("{}: {}", loader.name(), warning));
  }
}

void warn_of_random_numbers(const TextLog& log, const DataLoader& loader) {
  if (loader.take_random_draw()) {
    log.warning(fmt::format(
        "{}: its data set draws random numbers from LibTorch's default generator (torch::randn and "
        "the like). They depend on when and on which thread a sample is made, so a resumed run "
        "sees "
        "other data. Use a KeyedRandom of seed, epoch and index (core/random.h)",
        loader.name()));
  }
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
           "those of them that get -100, which losses and metrics leave out, instead of 0");
  return keys;
}

}  // namespace rondo
