#include "data/internal/batch_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/random.h"
#include "data/batch_memory.h"
#include "data/internal/random_watch.h"
#include "data/internal/samples.h"

namespace rondo::detail {

namespace {

[[noreturn]] void throw_beyond(const Pass& pass, int64_t size) {
  throw DataError(
      fmt::format("{}: a pass cannot go on behind sample {} of epoch {}: there are only {} "
                  "samples; the data set "
                  "has changed since that position was saved",
                  pass.loader,
                  pass.from.sample,
                  pass.from.epoch,
                  size));
}

/// Watches where a pass's first batch has its random numbers from; others cost nothing.
class FirstBatchWatch {
 public:
  FirstBatchWatch(const Pass& pass, bool& is_first) : pass_(pass) {
    if (std::exchange(is_first, false)) {
      watch_.emplace();
    }
  }

  FirstBatchWatch(const FirstBatchWatch&) = delete;
  FirstBatchWatch& operator=(const FirstBatchWatch&) = delete;

  ~FirstBatchWatch() {
    if (watch_ && watch_->has_seen_draw()) {
      pass_.random_draw->note();
    }
  }

 private:
  const Pass& pass_;
  std::optional<RandomWatch> watch_;
};

class IndexedStream final : public BatchStream {
 public:
  IndexedStream(std::shared_ptr<const Dataset> data, Pass pass)
      : data_(std::move(data)), pass_(std::move(pass)), size_(*pass_.samples), at_(pass_.from) {
    if (at_.sample > size_ && !pass_.may_be_beyond) {
      throw_beyond(pass_, size_);
    }
  }

  std::optional<Batch> next() override {
    const int64_t count = std::min(pass_.batch_size, size_ - at_.sample);
    if (count <= 0 || (pass_.drop_last && count < pass_.batch_size)) {
      return std::nullopt;
    }
    Batch batch;
    try {
      const FirstBatchWatch watch(pass_, is_first_);
      batch = make(next_indices(count));
    } catch (...) {
      std::throw_with_nested(
          DataError(fmt::format("{}, epoch {}, batch of the samples from {} to {}",
                                pass_.loader,
                                at_.epoch,
                                at_.sample,
                                at_.sample + count - 1)));
    }
    at_.sample += count;
    return batch;
  }

  LoaderPosition position() const override { return at_; }

 private:
  Batch make(const std::vector<int64_t>& indices) const {
    if (pass_.padding.lengths.empty()) {
      return data_->get_epoch_batch(indices, at_.epoch);
    }
    return stack_padded(get_samples(*data_, indices), indices, pass_.padding);
  }

  std::vector<int64_t> next_indices(int64_t count) {
    if (pass_.shuffle) {
      if (order_.empty()) {  // made here, because this is the prefetching thread
        order_ = permutation(size_, pass_.seed, at_.epoch);
      }
      const auto first = order_.begin() + at_.sample;
      return {first, first + count};
    }
    std::vector<int64_t> indices(static_cast<size_t>(count));
    std::iota(indices.begin(), indices.end(), at_.sample);
    return indices;
  }

  const std::shared_ptr<const Dataset> data_;
  const Pass pass_;
  const int64_t size_;
  LoaderPosition at_;
  std::vector<int64_t> order_;
  bool is_first_ = true;
};

class IterableStream final : public BatchStream {
 public:
  IterableStream(std::shared_ptr<IterableSource> source, Pass pass)
      : source_(std::move(source)), pass_(std::move(pass)), at_(pass_.from) {}

  std::optional<Batch> next() override {
    const std::lock_guard lock(source_->mutex);
    if (is_over_) {
      return std::nullopt;
    }
    if (!begin_or_check()) {
      return std::nullopt;
    }
    const FirstBatchWatch watch(pass_, is_first_);
    std::vector<Sample> samples;
    while (static_cast<int64_t>(samples.size()) < pass_.batch_size && !is_over_) {
      if (auto sample = read(at_.sample + static_cast<int64_t>(samples.size()))) {
        samples.push_back(std::move(*sample));
      }
    }
    if (samples.empty() || (is_over_ && pass_.drop_last)) {
      return std::nullopt;
    }
    const auto count = static_cast<int64_t>(samples.size());
    Batch batch = pass_.padding.lengths.empty() ? stack(samples) : padded(std::move(samples));
    at_.sample += count;
    return batch;
  }

  LoaderPosition position() const override { return at_; }

 private:
  /// \return false when the pass ends before its position
  bool begin_or_check() {
    if (number_ == 0) {
      number_ = ++source_->passes_started;
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
  int64_t number_ = 0;  // of this pass among those of the source; 0 before its first sample
  bool is_over_ = false;
  bool is_first_ = true;
};

class PassesStream final : public BatchStream {
 public:
  using PassAt = std::function<std::unique_ptr<BatchStream>(const LoaderPosition&)>;

  PassesStream(PassAt pass_at, const LoaderPosition& from)
      : pass_at_(std::move(pass_at)), pass_(pass_at_(from)) {}

  std::optional<Batch> next() override {
    if (is_over_) {
      pass_ = pass_at_({position().epoch + 1, 0});
    }
    std::optional<Batch> batch = pass_->next();
    is_over_ = !batch;
    return batch;
  }

  LoaderPosition position() const override { return pass_->position(); }

 private:
  const PassAt pass_at_;
  std::unique_ptr<BatchStream> pass_;
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

std::unique_ptr<BatchStream> in_batch_memory(std::unique_ptr<BatchStream> source) {
  return std::make_unique<StreamInBatchMemory>(std::move(source));
}

std::unique_ptr<BatchStream> passes(
    std::function<std::unique_ptr<BatchStream>(const LoaderPosition&)> pass_at,
    const LoaderPosition& from) {
  return std::make_unique<PassesStream>(std::move(pass_at), from);
}

std::unique_ptr<BatchStream> stream_of(std::shared_ptr<const Dataset> data, Pass pass) {
  return std::make_unique<IndexedStream>(std::move(data), std::move(pass));
}

std::unique_ptr<BatchStream> stream_of(std::shared_ptr<IterableSource> source, Pass pass) {
  return std::make_unique<IterableStream>(std::move(source), std::move(pass));
}

}  // namespace rondo::detail
