#include "data/data_loader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/require.h"
#include "data/internal/batch_streams.h"
#include "data/internal/loader_options.h"

namespace rondo {

namespace {

std::unique_ptr<BatchStream> made_ahead(std::unique_ptr<detail::PlannedStream> stream,
                                        const LoaderOptions& options,
                                        detail::PassEnd pass_end) {
  if (options.workers > 1) {
    const int64_t depth =
        std::max(options.prefetch.value_or(detail::kUsualPrefetch), options.workers);
    return detail::made_by_workers(std::move(stream), options.workers, depth, pass_end);
  }
  auto in_memory = detail::in_batch_memory(std::move(stream));
  return options.prefetch == 0
             ? std::move(in_memory)
             : detail::prefetched(std::move(in_memory), options.prefetch, pass_end);
}

/// Classes become the weights with which each comes equally often.
void balance(std::vector<double>& classes) {
  std::map<double, double> counts;
  for (const double number : classes) {
    counts[number] += 1;
  }
  for (double& number : classes) {
    number = 1 / counts[number];
  }
}

std::vector<double> sums_of(std::vector<double> weights, const std::string& name) {
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0) || std::isinf(weights[i])) {
      throw DataError(fmt::format(
          "\"{}\" of sample {} is {}, where a weight >= 0 is needed", name, i, weights[i]));
    }
    sum += weights[i];
    weights[i] = sum;
  }
  if (!(sum > 0) || std::isinf(sum)) {
    throw DataError(fmt::format("the weights \"{}\" of all samples have the sum {}", name, sum));
  }
  return weights;
}

/// Of each bucket.
std::vector<int64_t> batch_sizes_of(const LoaderOptions& options) {
  std::vector<int64_t> sizes;
  for (const int64_t length : options.pad_to) {
    sizes.push_back(options.max_tokens ? *options.max_tokens / length : options.batch_size);
  }
  return sizes;
}

}  // namespace

struct DataLoader::Shared {
  std::string label;
  Factory<DataSource> factory;
  const char* needs_index = nullptr;  // what needs a data set that is reached by index
  bool asks_ahead = false;            // a number of batches to make ahead was given
  std::optional<int64_t> limit;       // samples of the data that are used, at most
  std::string name;                   // in messages

  std::mutex mutex;  // guards the building of what follows; it never changes afterwards
  std::shared_ptr<DataSource> source;      // shared with the streams, which may outlive the loader
  std::shared_ptr<const Dataset> dataset;  // null for an iterable one
  std::shared_ptr<detail::IterableSource> iterable;  // null for an indexed one
  std::optional<int64_t> samples;
  bool has_given_notes = false;

  std::mutex order_mutex;  // guards what follows
  std::shared_ptr<const std::vector<double>> weight_sums;
  std::shared_ptr<const detail::Buckets> buckets;

  std::shared_ptr<detail::RandomDraw> random_draw =
      std::make_shared<detail::RandomDraw>();  // shared with the streams

  void build();
  void adopt(std::shared_ptr<DataSource> built);
  void count();
  void find_weights(const LoaderOptions& options);
  void find_buckets(const LoaderOptions& options);
  detail::OrderRule rule(const LoaderOptions& options, uint64_t run_seed);
  LoaderOptions threads_of(const LoaderOptions& options) const;
  std::shared_ptr<const detail::Buckets> buckets_of(const LoaderOptions& options) const;
  /// \param is_of_many  one of `epochs`, not of `stream`
  std::unique_ptr<detail::PlannedStream> pass(const LoaderOptions& options,
                                              const LoaderPosition& from,
                                              uint64_t run_seed,
                                              bool is_of_many,
                                              const RankRange& reads);
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
    dataset = std::move(indexed);
    count();
  } else if (auto sequential = std::dynamic_pointer_cast<IterableDataset>(built)) {
    if (needs_index != nullptr) {
      throw UsageError(
          fmt::format("{} needs an indexable data set; this one is iterable", needs_index));
    }
    if (asks_ahead && sequential->has_state()) {
      throw UsageError(
          "prefetch needs a data set that can be read ahead; this one keeps its own state, so its "
          "batches are made when they are asked for: leave prefetch out");
    }
    samples = sequential->size();
    iterable = std::make_shared<detail::IterableSource>();
    iterable->data = std::move(sequential);
  } else {
    throw UsageError("a data set derives from Dataset or IterableDataset");
  }
  source = std::move(built);
}

void DataLoader::Shared::count() {
  const int64_t size = dataset->size();
  detail::require(size >= 0, "size()", ">= 0", size);
  samples = std::min(size, limit.value_or(size));
}

/// Once, as it can take a pass over the data.
void DataLoader::Shared::find_weights(const LoaderOptions& options) {
  const bool balances = options.draw_by.empty();
  const std::string& tensor = balances ? options.balance_by : options.draw_by;
  if (weight_sums || tensor.empty()) {
    return;
  }
  try {
    std::vector<double> weights = dataset->numbers(tensor);
    weights.resize(static_cast<size_t>(*samples));
    if (balances) {
      balance(weights);
    }
    weight_sums = std::make_shared<const std::vector<double>>(sums_of(std::move(weights), tensor));
  } catch (...) {
    std::throw_with_nested(
        DataError(fmt::format("{}: cannot draw samples by \"{}\"", name, tensor)));
  }
}

/// The same of the lengths.
void DataLoader::Shared::find_buckets(const LoaderOptions& options) {
  if (buckets || (!options.buckets && !options.max_tokens)) {
    return;
  }
  try {
    detail::Buckets found;
    found.of_sample = dataset->lengths(options.pad);
    const detail::Padding padding{options.pad_to, options.pad, options.pad_labels};
    for (size_t i = 0; i < found.of_sample.size(); ++i) {
      int64_t& length = found.of_sample[i];
      length = static_cast<int64_t>(
          detail::place_of(length, static_cast<int64_t>(i), options.pad.front(), padding));
    }
    found.batch_sizes = batch_sizes_of(options);
    buckets = std::make_shared<const detail::Buckets>(std::move(found));
  } catch (...) {
    std::throw_with_nested(DataError(name + ": cannot put its samples into buckets"));
  }
}

/// A copy of the loader may have other sizes.
std::shared_ptr<const detail::Buckets> DataLoader::Shared::buckets_of(
    const LoaderOptions& options) const {
  std::vector<int64_t> sizes = batch_sizes_of(options);
  if (sizes == buckets->batch_sizes) {
    return buckets;
  }
  return std::make_shared<const detail::Buckets>(
      detail::Buckets{buckets->of_sample, std::move(sizes)});
}

detail::OrderRule DataLoader::Shared::rule(const LoaderOptions& options, uint64_t run_seed) {
  const std::lock_guard lock(order_mutex);
  detail::OrderRule made;
  made.samples = samples.value_or(0);
  made.batch_size = options.batch_size;
  made.shuffle = options.shuffle;
  made.drop_last = options.drop_last;
  made.seed = options.shuffle_seed.value_or(run_seed);
  if (dataset && *samples > 0) {
    find_weights(options);
    find_buckets(options);
    const bool draws = !options.draw_by.empty() || !options.balance_by.empty();
    made.weight_sums = draws ? weight_sums : nullptr;
    made.draws = options.draws.value_or(*samples);
    made.buckets = options.buckets || options.max_tokens ? buckets_of(options) : nullptr;
  }
  return made;
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
  detail::check_options(shared_->name, options_);
  shared_->label = std::move(label);
  shared_->factory = std::move(source);
  shared_->needs_index = detail::needs_index(options_);
  shared_->asks_ahead = options_.prefetch.value_or(0) > 0;
  shared_->limit = options_.first_samples;
}

DataLoader DataLoader::first(int64_t samples) const {
  shared_->build();
  if (shared_->dataset == nullptr) {
    throw UsageError(shared_->name + ": the first samples need an indexable data set");
  }
  detail::require(samples >= 1, shared_->name + ": samples", ">= 1", samples);
  DataLoader part(shared_->label, shared_->factory, options_);
  part.shared_->source = shared_->source;
  part.shared_->dataset = shared_->dataset;
  part.shared_->limit = std::min(samples, *shared_->samples);
  part.shared_->count();
  return part;
}

DataLoader DataLoader::in_order() const {
  DataLoader all = *this;
  all.options_.shuffle = false;
  all.options_.drop_last = false;
  all.options_.buckets = false;
  if (const auto most = std::exchange(all.options_.max_tokens, std::nullopt)) {
    all.options_.batch_size = *most / options_.pad_to.back();
  }
  all.options_.draw_by.clear();
  all.options_.balance_by.clear();
  all.options_.draws.reset();
  return all;
}

DataLoader DataLoader::in_larger_batches(int64_t times) const {
  detail::require(times >= 1, shared_->name + ": times", ">= 1", times);
  DataLoader larger = *this;
  larger.options_.batch_size *= times;
  if (larger.options_.max_tokens) {
    *larger.options_.max_tokens *= times;
  }
  return larger;
}

bool DataLoader::reads_parts() const {
  shared_->build();
  return shared_->dataset != nullptr && options_.pad_to.empty() && options_.not_cut.empty();
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
    if (shared_->dataset) {
      shared_->count();
      const std::lock_guard lock(shared_->order_mutex);
      shared_->weight_sums.reset();
      shared_->buckets.reset();
    }
  } catch (...) {
    std::throw_with_nested(DataError(fmt::format(
        "{}: its data does not match what was learnt from the training data", shared_->name)));
  }
}

DatasetNotes DataLoader::take_notes() const {
  shared_->build();
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->has_given_notes, true) ? DatasetNotes() : shared_->source->notes();
}

bool DataLoader::has_state() const {
  shared_->build();
  return shared_->iterable != nullptr && shared_->iterable->data->has_state();
}

void DataLoader::load_state(const StateDict& state, bool is_in_pass) const {
  shared_->build();
  if (!has_state()) {
    throw CheckpointError(
        shared_->name +
        ": the checkpoint holds the data set's own state, but this data set keeps none");
  }
  const std::lock_guard lock(shared_->iterable->mutex);
  shared_->iterable->data->load_state(state);
  shared_->iterable->is_in_pass = is_in_pass;
}

std::optional<int64_t> DataLoader::samples() const {
  shared_->build();
  return shared_->samples && options().draws ? options().draws : shared_->samples;
}

std::optional<int64_t> DataLoader::size(const LoaderPosition& from, uint64_t run_seed) const {
  const std::optional<int64_t> all = samples();
  if (!all) {
    return std::nullopt;
  }
  detail::OrderRule rule = shared_->rule(options(), run_seed);
  rule.samples = *all;
  if (!rule.buckets) {  // the order does not matter, and takes time
    rule.shuffle = false;
    rule.weight_sums.reset();
  }
  return detail::PassOrder(rule, from.epoch).batches_from(from.sample);
}

std::optional<int64_t> DataLoader::last_size() const {
  const std::optional<int64_t> all = samples();
  if (!all || options().buckets || options().max_tokens) {
    return std::nullopt;
  }
  const int64_t left = *all % options().batch_size;
  return left == 0 || options().drop_last ? options().batch_size : left;
}

bool DataLoader::take_random_draw() const {
  return shared_->random_draw->take();
}

std::optional<int64_t> DataLoader::number_of(const LoaderPosition& position,
                                             uint64_t run_seed) const {
  shared_->build();
  const detail::OrderRule rule = shared_->rule(options(), run_seed);
  if (!shared_->dataset || position.sample >= rule.size()) {
    return std::nullopt;
  }
  return detail::PassOrder(rule, position.epoch).number(position.sample);
}

std::unique_ptr<BatchStream> DataLoader::stream(const LoaderPosition& position,
                                                uint64_t run_seed,
                                                const RankRange& reads) const {
  return made_ahead(shared_->pass(options(), position, run_seed, /*is_of_many=*/false, reads),
                    shared_->threads_of(options()),
                    detail::PassEnd::Rest);
}

std::unique_ptr<BatchStream> DataLoader::epochs(const LoaderPosition& position,
                                                uint64_t run_seed,
                                                const RankRange& reads) const {
  const RankRange parts = reads_parts() ? reads : RankRange();
  const auto pass_at =
      [shared = shared_, how = options_, run_seed, parts](const LoaderPosition& from) {
        return shared->pass(how, from, run_seed, /*is_of_many=*/true, parts);
      };
  auto passes = detail::passes(pass_at, position);
  // Two passes over an iterable data set exclude each other, and a validation may come in between.
  return made_ahead(std::move(passes),
                    shared_->threads_of(options()),
                    shared_->iterable ? detail::PassEnd::Rest : detail::PassEnd::GoOn);
}

std::unique_ptr<detail::PlannedStream> DataLoader::Shared::pass(const LoaderOptions& how,
                                                                const LoaderPosition& position,
                                                                uint64_t run_seed,
                                                                bool is_of_many,
                                                                const RankRange& reads) {
  build();
  detail::require(position.epoch >= 0, name + ": epoch", ">= 0", position.epoch);
  detail::require(position.sample >= 0, name + ": sample", ">= 0", position.sample);
  detail::Pass made{name,
                    rule(how, run_seed),
                    position,
                    /*may_be_beyond=*/is_of_many,
                    {how.pad_to, how.pad, how.pad_labels},
                    random_draw,
                    reads,
                    /*cuts_batches=*/is_of_many};
  return dataset ? detail::stream_of(dataset, std::move(made))
                 : detail::stream_of(iterable, std::move(made));
}

/// What a data set with a state of its own gives is made when it is asked for.
LoaderOptions DataLoader::Shared::threads_of(const LoaderOptions& options) const {
  LoaderOptions made = options;
  if (iterable && iterable->data->has_state()) {
    made.prefetch = 0;
  }
  return made;
}

std::optional<std::string> slow_loader_advice(const DataLoader& loader, double waited, double ran) {
  constexpr double kShortest = 5.0;  // seconds
  constexpr double kSmallest = 0.1;
  if (ran < kShortest || waited < kSmallest * ran) {
    return std::nullopt;
  }
  const LoaderOptions& options = loader.options();
  const bool is_indexed = dynamic_cast<const Dataset*>(&loader.source()) != nullptr;
  return fmt::format(
      "{}: the run waited for its batches {:.0f} % of the time; {}",
      loader.name(),
      100 * waited / ran,
      options.prefetch == 0 ? "leave out prefetch = 0, so that batches are made ahead"
      : is_indexed ? fmt::format("more threads (workers = {}), smaller or decoded files, or a data "
                                 "set with a faster get_batch would help",
                                 2 * options.workers)
                   : std::string("a data set with a faster `next` would help"));
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

}  // namespace rondo
