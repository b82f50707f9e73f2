#include "data/grouped_stream.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"

namespace rondo {

GroupedStream::GroupedStream(const DataLoader& loader,
                             int64_t group_size,
                             uint64_t run_seed,
                             const LoaderPosition& position)
    : loader_(loader),
      group_size_(group_size),
      stream_(loader.epochs(position, run_seed)),
      ahead_(stream_->next()),
      first_epoch_(position.epoch) {
  if (!ahead_ && position.sample > 0) {
    ++first_epoch_;
    ahead_ = stream_->next();
  }
}

GroupedBatch GroupedStream::next() {
  if (given_ == group_.size()) {
    read_group();
  }
  return std::move(group_[given_++]);
}

void GroupedStream::read_group() {
  const bool has_begun = !group_.empty();
  if (!ahead_ && has_begun) {
    ahead_ = stream_->next();
  }
  if (!ahead_) {
    throw DataError(fmt::format("the training data of epoch {} yields no batch: {}",
                                stream_->position().epoch,
                                why_no_batch(loader_)));
  }
  group_.clear();
  given_ = 0;
  while (ahead_ && static_cast<int64_t>(group_.size()) < group_size_) {
    group_.push_back({std::move(*ahead_), {}, false});
    ahead_ = stream_->next();
  }
  const auto size = static_cast<int64_t>(group_.size());
  for (int64_t i = 0; i < size; ++i) {
    group_[static_cast<size_t>(i)].phase = {i == 0, i + 1 == size, size};
  }
  group_.back().ends_epoch = !ahead_.has_value();
}

}  // namespace rondo
