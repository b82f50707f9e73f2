#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "data/batch_memory.h"
#include "data/internal/batch_streams.h"

namespace rondo::detail {

namespace {

class WorkersStream final : public BatchStream {
 public:
  WorkersStream(std::unique_ptr<PlannedStream> source,
                int64_t workers,
                int64_t depth,
                PassEnd pass_end)
      : source_(std::move(source)),
        depth_(static_cast<size_t>(depth)),
        rests_at_end_(pass_end == PassEnd::Rest),
        at_(source_->position()) {
    try {
      for (int64_t i = 0; i < workers; ++i) {
        threads_.emplace_back([this] { run(); });
      }
    } catch (...) {  // the system has no more threads: those that run end first
      stop();
      throw;
    }
  }

  ~WorkersStream() override { stop(); }

  std::optional<Batch> next() override {
    std::unique_lock lock(mutex_);
    if (is_resting_ && slots_.empty()) {
      is_resting_ = false;
      room_.notify_one();
    }
    ready_.wait(lock, [this] { return !slots_.empty() && slots_.front().is_made; });
    if (slots_.front().error) {
      std::rethrow_exception(slots_.front().error);  // stays there: nothing comes behind it
    }
    Slot slot = std::move(slots_.front());
    slots_.pop_front();
    lock.unlock();
    room_.notify_one();
    at_ = slot.behind;
    return std::move(slot.batch);
  }

  LoaderPosition position() const override { return at_; }

 private:
  struct Slot {
    LoaderPosition behind;
    std::optional<Batch> batch = {};  // nothing: the end of a pass
    std::exception_ptr error = {};
    bool is_made = false;
  };

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    room_.notify_all();
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }

  void run() {
    PlannedStream::Make make;
    while (Slot* const slot = plan_next(make)) {
      std::optional<Batch> batch;
      std::exception_ptr error;
      try {
        const BatchMemory::Scope scope(memory_);
        batch = make();
      } catch (...) {
        error = std::current_exception();
      }
      make = nullptr;
      const std::lock_guard lock(mutex_);
      slot->batch = std::move(batch);
      slot->error = std::move(error);
      slot->is_made = true;
      has_failed_ = has_failed_ || slot->error;
      ready_.notify_one();
    }
  }

  /// Takes the next batch that is to be made, with the slot that it is to be put into. Null when
  /// there is none any more.
  Slot* plan_next(PlannedStream::Make& make) {
    const std::lock_guard planning(plan_mutex_);  // slots stand in the order of the plan
    while (wait_for_room()) {
      std::optional<PlannedStream::Make> planned;
      std::exception_ptr error;
      try {
        planned = source_->plan();
      } catch (...) {
        error = std::current_exception();
      }
      const std::lock_guard lock(mutex_);
      slots_.push_back({source_->position()});
      if (planned) {
        make = std::move(*planned);
        return &slots_.back();  // its address stays: elements come and go at the ends alone
      }
      slots_.back().error = error;
      slots_.back().is_made = true;
      has_failed_ = has_failed_ || error;
      is_resting_ = rests_at_end_;
      ready_.notify_one();
    }
    return nullptr;
  }

  /// False when nothing is to be made any more.
  bool wait_for_room() {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] {
      return is_stopping_ || has_failed_ || (!is_resting_ && slots_.size() < depth_);
    });
    return !is_stopping_ && !has_failed_;
  }

  const std::unique_ptr<PlannedStream> source_;  // used under `plan_mutex_`
  const size_t depth_;
  const bool rests_at_end_;
  LoaderPosition at_;  // used by the consumer alone
  BatchMemory memory_;

  std::mutex plan_mutex_;  // taken before the other one
  std::mutex mutex_;       // guards what follows
  std::condition_variable room_;
  std::condition_variable ready_;
  std::deque<Slot> slots_;   // batches in order, made or in the making
  bool has_failed_ = false;  // nothing is planned behind an error
  bool is_resting_ = false;  // behind the end of a pass, until something is asked for
  bool is_stopping_ = false;

  std::vector<std::thread> threads_;  // last: they start when everything else is there
};

}  // namespace

std::unique_ptr<BatchStream> made_by_workers(std::unique_ptr<PlannedStream> source,
                                             int64_t workers,
                                             int64_t depth,
                                             PassEnd pass_end) {
  return std::make_unique<WorkersStream>(std::move(source), workers, depth, pass_end);
}

}  // namespace rondo::detail
