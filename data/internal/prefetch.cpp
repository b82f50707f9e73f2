#include <algorithm>
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

constexpr size_t kMostLent = 1024;

size_t depth_for(const Batch& batch) {
  size_t bytes = 0;
  for (const auto& [path, tensor] : batch.items()) {
    bytes += tensor.nbytes();
  }
  return static_cast<size_t>(usual_prefetch_depth(static_cast<int64_t>(bytes)));
}

/// Tensors of batches that the consumer may still use. Whoever drops a tensor last gives its memory
/// back, which is slow where another thread allocated it, and asks the system to do something when
/// it is large: that is to be the thread that makes batches, not the one that trains.
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
  PrefetchStream(std::unique_ptr<BatchStream> source, std::optional<int64_t> depth)
      : source_(std::move(source)),
        depth_is_given_(depth.has_value()),
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
    ready_.wait(lock, [this] { return !queue_.empty() || is_finished_; });
    if (queue_.empty()) {
      if (error_) {
        std::rethrow_exception(error_);
      }
      return std::nullopt;
    }
    Made made = std::move(queue_.front());
    queue_.pop_front();
    const bool has_room = queue_.size() <= depth_ / 2;
    lock.unlock();
    if (has_room) {
      room_.notify_one();
    }
    at_ = made.behind;
    return std::move(made.batch);
  }

  LoaderPosition position() const override { return at_; }

 private:
  struct Made {
    Batch batch;
    LoaderPosition behind;
  };

  void run() {
    LentTensors lent;
    std::exception_ptr error;
    try {
      // Room comes first: no more than `depth_` batches ever exist ahead of the consumer.
      while (wait_for_room()) {
        lent.drop_returned(kMostLent);  // first: the next batch may have their memory
        auto batch = source_->next();
        if (!batch) {
          break;
        }
        lent.add(*batch);
        push({std::move(*batch), source_->position()});
      }
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
    is_finished_ = true;
    ready_.notify_one();
  }

  /// Once the queue is full, waits until half of it is free: waking the thread costs the consumer
  /// more than a small step. False when the stream is being destroyed.
  bool wait_for_room() {
    std::unique_lock lock(mutex_);
    if (queue_.size() >= depth_) {
      room_.wait(lock, [this] { return queue_.size() <= depth_ / 2 || is_stopping_; });
    }
    return !is_stopping_;
  }

  void push(Made made) {
    const std::lock_guard lock(mutex_);
    if (!depth_is_given_) {
      depth_ = depth_for(made.batch);
    }
    queue_.push_back(std::move(made));
    ready_.notify_one();
  }

  const std::unique_ptr<BatchStream> source_;  // used by the thread alone
  const bool depth_is_given_;
  LoaderPosition at_;  // used by the consumer alone

  std::mutex mutex_;  // guards what follows
  size_t depth_;
  std::condition_variable room_;
  std::condition_variable ready_;
  std::deque<Made> queue_;
  std::exception_ptr error_;
  bool is_finished_ = false;
  bool is_stopping_ = false;

  std::thread thread_;  // last: it starts when everything else is there
};

}  // namespace

std::unique_ptr<BatchStream> prefetched(std::unique_ptr<BatchStream> source,
                                        std::optional<int64_t> depth) {
  return std::make_unique<PrefetchStream>(std::move(source), depth);
}

}  // namespace rondo::detail
