#include "data/internal/batch_streams.h"

#include <fmt/format.h>

#include <exception>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "core/error.h"
#include "data/batch_memory.h"
#include "data/internal/random_watch.h"
#include "data/internal/rows.h"

namespace rondo::detail {

namespace {

[[noreturn]] void throw_beyond(const Pass& pass, int64_t size) {
  throw DataError(
      fmt::format("{}: a pass cannot continue after sample {} of epoch {}: there are only {} "
                  "samples; the data set has changed since that position was saved",
                  pass.loader,
                  pass.from.sample,
                  pass.from.epoch,
                  size));
}

/// Whether a pass that gives whole batches gives the one with this number.
bool gives(const Pass& pass, int64_t batch) {
  return pass.cuts_batches || pass.reads.has(batch % pass.reads.all);
}

/// Watches where a pass's first batch has its random numbers from; others cost nothing.
class FirstBatchWatch {
 public:
  FirstBatchWatch(RandomDraw& draw, bool is_first) : draw_(draw) {
    if (is_first) {
      watch_.emplace();
    }
  }

  FirstBatchWatch(const FirstBatchWatch&) = delete;
  FirstBatchWatch& operator=(const FirstBatchWatch&) = delete;

  ~FirstBatchWatch() {
    if (watch_ && watch_->has_seen_draw()) {
      draw_.note();
    }
  }

 private:
  RandomDraw& draw_;
  std::optional<RandomWatch> watch_;
};

/// A batch of an indexed data set that is still to be made.
struct IndexedBatch {
  std::shared_ptr<const Dataset> data;
  std::shared_ptr<const Pass> pass;
  LoaderPosition at;
  std::vector<int64_t> indices;
  bool is_first;

  Batch operator()() const {
    try {
      const FirstBatchWatch watch(*pass->random_draw, is_first);
      return make();
    } catch (...) {
      std::throw_with_nested(
          DataError(fmt::format("{}, epoch {}, batch of the samples from {} to {}",
                                pass->loader,
                                at.epoch,
                                at.sample,
                                at.sample + static_cast<int64_t>(indices.size()) - 1)));
    }
  }

 private:
  Batch make() const {
    if (pass->padding.lengths.empty()) {
      return data->get_epoch_batch(indices, at.epoch);
    }
    std::vector<Sample> samples;  // one by one: before they are padded their lengths differ
    samples.reserve(indices.size());
    for (const int64_t index : indices) {
      samples.push_back(only_sample(data->get_epoch_batch({index}, at.epoch)));
    }
    return stack_padded(std::move(samples), indices, pass->padding);
  }
};

class IndexedStream final : public PlannedStream {
 public:
  IndexedStream(std::shared_ptr<const Dataset> data, Pass pass)
      : data_(std::move(data)),
        pass_(std::make_shared<const Pass>(std::move(pass))),
        at_(pass_->from) {
    if (at_.sample > pass_->order.size() && !pass_->may_be_beyond) {
      throw_beyond(*pass_, pass_->order.size());
    }
  }

  std::optional<Make> plan() override {
    if (!order_) {  // made here, because this is the prefetching thread
      order_.emplace(pass_->order, at_.epoch);
    }
    int64_t count = order_->batch_at(at_.sample);
    while (count > 0 && !gives(*pass_, batch_++)) {
      at_.sample += count;
      count = order_->batch_at(at_.sample);
    }
    if (count == 0) {
      return std::nullopt;
    }
    LoaderPosition at = at_;
    at_.sample += count;
    std::vector<int64_t> indices = indices_of(at, count);
    return IndexedBatch{data_, pass_, at, std::move(indices), std::exchange(is_first_, false)};
  }

  LoaderPosition position() const override { return at_; }

 private:
  /// Of the batch at `at`, or of its parts that are read: `at` is where they begin then.
  std::vector<int64_t> indices_of(LoaderPosition& at, int64_t count) const {
    const RankRange& reads = pass_->reads;
    const bool is_cut = pass_->cuts_batches && count >= reads.all;
    const int64_t begin = is_cut ? begin_of_part(count, reads.first, reads.all) : 0;
    const int64_t end = is_cut ? begin_of_part(count, reads.first + reads.own, reads.all) : count;
    at.sample += begin;
    std::vector<int64_t> indices(static_cast<size_t>(end - begin));
    for (int64_t i = 0; i < end - begin; ++i) {
      indices[static_cast<size_t>(i)] = order_->number(at.sample + i);
    }
    return indices;
  }

  const std::shared_ptr<const Dataset> data_;
  const std::shared_ptr<const Pass> pass_;
  LoaderPosition at_;
  std::optional<PassOrder> order_;
  int64_t batch_ = 0;  // number of the next one, from where the pass begins
  bool is_first_ = true;
};

class IterableStream final : public PlannedStream {
 public:
  IterableStream(std::shared_ptr<IterableSource> source, Pass pass)
      : source_(std::move(source)), pass_(std::move(pass)), at_(pass_.from) {}

  std::optional<Make> plan() override {
    std::optional<Batch> batch = read_batch();
    while (batch && !gives(pass_, batch_++)) {
      batch = read_batch();
    }
    if (!batch) {
      return std::nullopt;
    }
    return [made = std::move(*batch)] { return made; };
  }

  LoaderPosition position() const override { return at_; }

 private:
  std::optional<Batch> read_batch() {
    const std::lock_guard lock(source_->mutex);
    if (is_over_) {
      return std::nullopt;
    }
    if (!begin_or_check()) {
      return std::nullopt;
    }
    const FirstBatchWatch watch(*pass_.random_draw, std::exchange(is_first_, false));
    std::vector<Sample> samples;
    while (static_cast<int64_t>(samples.size()) < pass_.order.batch_size && !is_over_) {
      if (auto sample = read(at_.sample + static_cast<int64_t>(samples.size()))) {
        samples.push_back(std::move(*sample));
      }
    }
    if (samples.empty() || (is_over_ && pass_.order.drop_last)) {
      return std::nullopt;
    }
    const auto count = static_cast<int64_t>(samples.size());
    Batch batch = pass_.padding.lengths.empty() ? stack(samples) : padded(std::move(samples));
    at_.sample += count;
    return batch;
  }

  /// \return false when the pass ends before its position
  bool begin_or_check() {
    if (number_ == 0) {
      number_ = ++source_->passes_started;
      if (std::exchange(source_->is_in_pass, false)) {
        return true;
      }
      source_->data->start(at_.epoch);
      for (int64_t i = 0; i < at_.sample; ++i) {
        if (!read(i)) {
          if (!pass_.may_be_beyond) {
            throw_beyond(pass_, i);
          }
          return false;
        }
      }
    } else if (number_ != source_->passes_started) {
      throw UsageError(fmt::format(
          "{}: this pass was ended by another one: an iterable data set has one at a time; use "
          "another loader for the other pass",
          pass_.loader));
    }
    return true;
  }

  Batch padded(std::vector<Sample> samples) const {
    std::vector<int64_t> numbers(samples.size());
    std::iota(numbers.begin(), numbers.end(), at_.sample);
    return stack_padded(std::move(samples), numbers, pass_.padding);
  }

  std::optional<Sample> read(int64_t number) {
    try {
      auto sample = source_->data->next();
      is_over_ = !sample;
      return sample;
    } catch (...) {
      std::throw_with_nested(DataError(
          fmt::format("{}, epoch {}: cannot get sample {}", pass_.loader, at_.epoch, number)));
    }
  }

  const std::shared_ptr<IterableSource> source_;
  const Pass pass_;
  LoaderPosition at_;
  int64_t batch_ = 0;   // number of the next one, from where the pass begins
  int64_t number_ = 0;  // of this pass among those of the source; 0 before its first sample
  bool is_over_ = false;
  bool is_first_ = true;
};

class PassesStream final : public PlannedStream {
 public:
  using PassAt = std::function<std::unique_ptr<PlannedStream>(const LoaderPosition&)>;

  PassesStream(PassAt pass_at, const LoaderPosition& from)
      : pass_at_(std::move(pass_at)), pass_(pass_at_(from)) {}

  std::optional<Make> plan() override {
    if (is_over_) {
      pass_ = pass_at_({position().epoch + 1, 0});
    }
    std::optional<Make> make = pass_->plan();
    is_over_ = !make;
    return make;
  }

  LoaderPosition position() const override { return pass_->position(); }

 private:
  const PassAt pass_at_;
  std::unique_ptr<PlannedStream> pass_;
  bool is_over_ = false;
};

class StreamInBatchMemory final : public BatchStream {
 public:
  explicit StreamInBatchMemory(std::unique_ptr<BatchStream> source) : source_(std::move(source)) {}

  std::optional<Batch> next() override {
    const BatchMemory::Scope scope(memory_);
    return source_->next();
  }

  LoaderPosition position() const override { return source_->position(); }

 private:
  BatchMemory memory_;
  const std::unique_ptr<BatchStream> source_;
};

}  // namespace

std::optional<Batch> PlannedStream::next() {
  if (error_) {
    std::rethrow_exception(error_);
  }
  try {
    const std::optional<Make> make = plan();
    return make ? std::optional<Batch>((*make)()) : std::nullopt;
  } catch (...) {
    error_ = std::current_exception();
    throw;
  }
}

std::unique_ptr<BatchStream> in_batch_memory(std::unique_ptr<BatchStream> source) {
  return std::make_unique<StreamInBatchMemory>(std::move(source));
}

std::unique_ptr<PlannedStream> passes(
    std::function<std::unique_ptr<PlannedStream>(const LoaderPosition&)> pass_at,
    const LoaderPosition& from) {
  return std::make_unique<PassesStream>(std::move(pass_at), from);
}

std::unique_ptr<PlannedStream> stream_of(std::shared_ptr<const Dataset> data, Pass pass) {
  return std::make_unique<IndexedStream>(std::move(data), std::move(pass));
}

std::unique_ptr<PlannedStream> stream_of(std::shared_ptr<IterableSource> source, Pass pass) {
  return std::make_unique<IterableStream>(std::move(source), std::move(pass));
}

}  // namespace rondo::detail
