#include "data/data_executor.h"

#include <utility>

namespace rondo {

namespace {

/// Sets a flag for as long as it lives.
class FlagScope {
 public:
  explicit FlagScope(bool& flag) : flag_(flag) { flag_ = true; }

  FlagScope(const FlagScope&) = delete;
  FlagScope& operator=(const FlagScope&) = delete;

  ~FlagScope() { flag_ = false; }

 private:
  bool& flag_;
};

}  // namespace

DataExecutor::DataExecutor(Backend& backend, Source source, std::optional<int64_t> num_batches)
    : backend_(backend), source_(std::move(source)), num_batches_(num_batches) {}

std::optional<Batch> DataExecutor::next() {
  if (has_run_all()) {
    return std::nullopt;
  }
  std::optional<Batch> host = source_();
  if (!host) {
    return std::nullopt;
  }
  ++iteration_;
  return backend_.stage(std::move(*host));
}

const Outputs& DataExecutor::run(const StepKey& key,
                                 const Batch& batch,
                                 const StepBody& body,
                                 const IsDue& is_due) {
  return *kept(&backend_.run(key, batch, body, is_due, queue_));
}

const Outputs* DataExecutor::start(const StepKey& key,
                                   const Batch& batch,
                                   const StepBody& body,
                                   const IsDue& is_due,
                                   const Deadline& deadline) {
  return kept(backend_.start(key, batch, body, is_due, queue_, deadline));
}

const Outputs* DataExecutor::resume(const Deadline& deadline) {
  return kept(backend_.resume(deadline));
}

// A copy: host code may drop the step, or run another one, while it still reads these.
const Outputs* DataExecutor::kept(const Outputs* outputs) {
  if (outputs == nullptr) {
    return nullptr;
  }
  outputs_ = *outputs;
  return &outputs_;
}

void DataExecutor::defer(StepClosure closure) {
  if (is_running_closures_) {
    closure.run(closure.tensors);
  } else {
    queue_.push_back(std::move(closure));
  }
}

void DataExecutor::finish() {
  if (queue_.empty()) {
    return;
  }
  const FlagScope running(is_running_closures_);
  ClosureQueue queued;
  queued.swap(queue_);
  for (const StepClosure& closure : queued) {
    closure.run(closure.tensors);
  }
  queued.clear();
  queue_.swap(queued);  // keeps the memory for the next iteration
}

}  // namespace rondo
