#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "data/internal/batch_streams.h"
#include "data/prefetch_depth.h"

namespace rondo::detail {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostLent = 1024;
constexpr size_t kLeastPaced = 8;  // the consumer wakes the thread of a shorter queue

size_t depth_for(const Batch& batch) {
  size_t bytes = 0;
  for (const auto& [path, tensor] : batch.items()) {
    bytes += tensor.nbytes();
  }
  return static_cast<size_t>(usual_prefetch_depth(static_cast<int64_t>(bytes)));
}

/// Tensors of batches that the consumer may still use. Whoever drops a tensor last gives its memory
/// back, which is slow where another thread allocated it, and asks the system to do something when
/// it is large and a data set's own: that is to be the thread that makes batches, not the one that
/// trains.
class LentTensors {
 public:
  void add(const Batch& batch) {
    for (const auto& [path, tensor] : batch.items()) {
      if (tensor.defined()) {
        tensors_.push_back(tensor);
      }
    }
  }

  /// Drops those that nobody else has any more, and the oldest beyond `most`: what a data set keeps
  /// for itself never comes back.
  void drop_returned(size_t most) {
    const auto is_returned = [](const at::Tensor& tensor) { return tensor.use_count() == 1; };
    tensors_.erase(std::remove_if(tensors_.begin(), tensors_.end(), is_returned), tensors_.end());
    if (tensors_.size() > most) {
      tensors_.erase(tensors_.begin(), tensors_.end() - static_cast<std::ptrdiff_t>(most));
    }
  }

 private:
  std::vector<at::Tensor> tensors_;
};

class PrefetchStream final : public BatchStream {
 public:
  PrefetchStream(std::unique_ptr<BatchStream> source,
                 std::optional<int64_t> depth,
                 PassEnd pass_end)
      : source_(std::move(source)),
        depth_is_given_(depth.has_value()),
        rests_at_end_(pass_end == PassEnd::Rest),
        at_(source_->position()),
        depth_(static_cast<size_t>(depth.value_or(1))),  // the first batch may tell another one
        thread_([this] { run(); }) {}

  ~PrefetchStream() override {
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    room_.notify_one();
    thread_.join();
  }

  std::optional<Batch> next() override {
    std::unique_lock lock(mutex_);
    if (is_resting_ && queue_.empty()) {
      is_resting_ = false;
      room_.notify_one();
    }
    ready_.wait(lock, [this] { return !queue_.empty() || error_; });
    if (queue_.empty()) {
      std::rethrow_exception(error_);
    }
    Made made = std::move(queue_.front());
    queue_.pop_front();
    const bool is_low = queue_.size() <= low_mark();
    lock.unlock();
    if (is_low) {
      room_.notify_one();
    }
    at_ = made.behind;
    return std::move(made.batch);
  }

  LoaderPosition position() const override { return at_; }

 private:
  struct Made {
    std::optional<Batch> batch;  // nothing: the end of a pass
    LoaderPosition behind;
  };

  void run() {
    LentTensors lent;
    try {
      // Room comes first: no more than `depth_` batches ever exist ahead of the consumer.
      while (wait_for_room()) {
        lent.drop_returned(kMostLent);  // first: the next batch may have their memory
        std::optional<Batch> batch = source_->next();
        if (batch) {
          lent.add(*batch);
        }
        push({std::move(batch), source_->position()});
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      ready_.notify_one();
    }
  }

  /// Once the queue is full, waits until about half of it is free. False when the stream is being
  /// destroyed.
  bool wait_for_room() {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] { return !is_resting_ || is_stopping_; });
    while (queue_.size() >= depth_ && !is_stopping_) {  // once, unless batches grew meanwhile
      wait_for_consumer(lock);
    }
    return !is_stopping_;
  }

  /// Waking a thread costs the one that wakes it 5 to 20 us, more than a small step. So this one
  /// wakes by itself when the consumer, at the pace that was seen last, has taken half of the
  /// queue; the consumer wakes it only when it was faster.
  void wait_for_consumer(std::unique_lock<std::mutex>& lock) {
    const auto is_wanted = [this] { return queue_.size() <= low_mark() || is_stopping_; };
    const auto start = Clock::now();
    const size_t before = queue_.size();
    Clock::duration nap{};
    if (depth_ >= kLeastPaced) {
      nap = pace_ * static_cast<int64_t>(depth_ / 2);
    }
    while (queue_.size() == before && !is_stopping_) {
      if (nap == Clock::duration::zero()) {
        room_.wait(lock, is_wanted);
      } else {
        room_.wait_for(lock, nap, is_wanted);
      }
      nap *= 2;
    }
    if (queue_.size() < before) {
      pace_ = (Clock::now() - start) / static_cast<int64_t>(before - queue_.size());
    }
  }

  size_t low_mark() const { return depth_ >= kLeastPaced ? depth_ / 4 : depth_ / 2; }

  void push(Made made) {
    const std::lock_guard lock(mutex_);
    is_resting_ = rests_at_end_ && !made.batch;
    if (!depth_is_given_ && made.batch) {
      depth_ = depth_for(*made.batch);
    }
    queue_.push_back(std::move(made));
    ready_.notify_one();
  }

  const std::unique_ptr<BatchStream> source_;  // used by the thread alone
  const bool depth_is_given_;
  const bool rests_at_end_;
  LoaderPosition at_;       // used by the consumer alone
  Clock::duration pace_{};  // of the consumer, a batch; used by the thread alone

  std::mutex mutex_;  // guards what follows
  size_t depth_;
  std::condition_variable room_;
  std::condition_variable ready_;
  std::deque<Made> queue_;
  std::exception_ptr error_;  // after what is in the queue, nothing comes behind it
  bool is_resting_ = false;   // behind the end of a pass, until something is asked for
  bool is_stopping_ = false;

  std::thread thread_;  // last: it starts when everything else is there
};

}  // namespace

std::unique_ptr<BatchStream> prefetched(std::unique_ptr<BatchStream> source,
                                        std::optional<int64_t> depth,
                                        PassEnd pass_end) {
  return std::make_unique<PrefetchStream>(std::move(source), depth, pass_end);
}

}  // namespace rondo::detail
