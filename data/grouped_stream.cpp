#include "data/grouped_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "data/micro_batches.h"

namespace rondo {

GroupedStream::GroupedStream(const DataLoader& loader,
                             const GroupOptions& options,
                             uint64_t run_seed,
                             const LoaderPosition& position)
    : loader_(loader),
      options_(options),
      run_seed_(run_seed),
      epoch_(position.epoch),
      looks_ahead_(!loader.has_state()) {
  begin_epoch(position.sample);
  if (looks_ahead_ && !ahead_ && position.sample > 0) {
    ++epoch_;
    begin_epoch(0);
  }
  first_epoch_ = epoch_;
}

// The stream itself goes on with the next epoch, unless its pass was cut short.
void GroupedStream::begin_epoch(int64_t sample) {
  const int64_t batch_size = loader_.options().batch_size;
  if (stream_ == nullptr || options_.batches_of_pass) {
    stream_.reset();  // an iterable data set has one pass at a time
    stream_ = loader_.epochs({epoch_, sample}, run_seed_);
  }
  read_ = (sample + batch_size - 1) / batch_size;
  ahead_ = looks_ahead_ ? read() : std::nullopt;
}

std::optional<Batch> GroupedStream::read() {
  if (options_.batches_of_pass && read_ >= *options_.batches_of_pass) {
    return std::nullopt;
  }
  ++read_;
  return stream_->next();
}

GroupedBatch GroupedStream::next() {
  if (given_ == group_.size()) {
    read_group();
  }
  return std::move(group_[given_++]);
}

/// The first batch of the next group.
void GroupedStream::read_first() {
  const bool has_begun = !group_.empty();
  if (!looks_ahead_) {
    ahead_ = read();
  }
  if (!ahead_ && (has_begun || !looks_ahead_)) {  // the end of the pass before
    ++epoch_;
    begin_epoch(0);
    if (!looks_ahead_) {
      ahead_ = read();
    }
  }
}

/// Whether no batch of the pass is left, as far as is known without asking for it.
bool GroupedStream::is_last() const {
  if (looks_ahead_) {
    return !ahead_;
  }
  const std::optional<int64_t> samples = loader_.samples();
  return (options_.batches_of_pass && read_ >= *options_.batches_of_pass) ||
         (samples && stream_->position().sample >= *samples);
}

void GroupedStream::read_group() {
  read_first();
  if (!ahead_) {
    throw DataError(fmt::format(
        "the training data of epoch {} yields no batch: {}", epoch_, why_no_batch(loader_)));
  }
  group_.clear();
  given_ = 0;
  for (int64_t i = 0; ahead_ && i < options_.batches; ++i) {
    add(std::move(*ahead_));
    ahead_ = looks_ahead_ || (i + 1 < options_.batches && !is_last()) ? read() : std::nullopt;
  }
  is_at_end_ = is_last();
  const auto size = static_cast<int64_t>(group_.size());
  for (int64_t i = 0; i < size; ++i) {
    group_[static_cast<size_t>(i)].phase = {i == 0, i + 1 == size, size};
  }
  group_.back().ends_epoch = is_at_end_;
  set_shares();
}

void GroupedStream::add(Batch batch) {
  if (!options_.micro_batch) {
    group_.push_back({std::move(batch), {}, false, std::nullopt});
    return;
  }
  for (Batch& piece : micro_batches(batch, *options_.micro_batch, loader_.options().not_cut)) {
    group_.push_back({std::move(piece), {}, false, std::nullopt});
  }
}

void GroupedStream::set_shares() {
  if (group_.size() == 1) {
    return;
  }
  std::vector<int64_t> weights;
  int64_t sum = 0;
  for (const GroupedBatch& one : group_) {
    weights.push_back(options_.on_tokens ? tokens_of(one.batch, loader_.options().pad_labels)
                                         : one.batch.size());
    sum += weights.back();
  }
  const bool are_alike = std::all_of(
      weights.begin(), weights.end(), [&](int64_t weight) { return weight == weights.front(); });
  for (size_t i = 0; !are_alike && i < group_.size(); ++i) {
    group_[i].share = static_cast<double>(weights[i]) / static_cast<double>(sum);
  }
}

}  // namespace rondo
