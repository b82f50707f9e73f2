#include "data/grouped_stream.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "data/micro_batches.h"

namespace rondo {

namespace {

int64_t trailing_ones(int64_t number) {
  int64_t ones = 0;
  for (; number % 2 == 1; number /= 2) {
    ++ones;
  }
  return ones;
}

/// Where the shares of a group differ, those of its batches.
std::vector<std::optional<double>> shares_of(const std::vector<int64_t>& weights) {
  const int64_t sum = std::accumulate(weights.begin(), weights.end(), int64_t{0});
  const bool are_alike = std::all_of(
      weights.begin(), weights.end(), [&](int64_t weight) { return weight == weights.front(); });
  std::vector<std::optional<double>> shares(weights.size());
  for (size_t i = 0; !are_alike && i < weights.size(); ++i) {
    shares[i] = static_cast<double>(weights[i]) / static_cast<double>(sum);
  }
  return shares;
}

}  // namespace

int64_t tokens_in(const Batch& batch) {
  for (const char* name : {"tokens", "input_ids"}) {
    if (const at::Tensor* const tokens = batch.find(name)) {
      return tokens->numel();
    }
  }
  return 0;
}

GroupedStream::GroupedStream(const DataLoader& loader,
                             const GroupOptions& options,
                             uint64_t run_seed,
                             const LoaderPosition& position)
    : loader_(loader),
      options_(options),
      run_seed_(run_seed),
      epoch_(position.epoch),
      reads_(options.on_tokens || !loader.reads_parts() ? RankRange() : options.ranks),
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
    stream_ = loader_.epochs({epoch_, sample}, run_seed_, reads_);
  }
  read_ = (sample + batch_size - 1) / batch_size;
  ahead_ = looks_ahead_ ? read() : std::nullopt;
}

/// Of tensors whose rows are alike, where samples are missing.
int64_t GroupedStream::Read::tokens() const {
  const int64_t found = tokens_in(batch);
  return found == 0 || batch.size() == samples ? found : found / batch.size() * samples;
}

std::optional<GroupedStream::Read> GroupedStream::read() {
  if (options_.batches_of_pass && read_ >= *options_.batches_of_pass) {
    return std::nullopt;
  }
  ++read_;
  const LoaderPosition before = stream_->position();
  std::optional<Batch> batch = stream_->next();
  if (!batch) {
    return std::nullopt;
  }
  const LoaderPosition after = stream_->position();
  const int64_t samples = after.sample - (after.epoch == before.epoch ? before.sample : 0);
  if (reads_.all == 1 || samples < reads_.all) {
    return Read{std::move(*batch), 0, samples, samples};
  }
  return Read{std::move(*batch),
              begin_of_part(samples, reads_.first, reads_.all),
              begin_of_part(samples, reads_.first + reads_.own, reads_.all),
              samples};
}

/// \throws DataError  when a data set gives another number of rows than of samples, so that nobody
///                    knows which of them are whose
void GroupedStream::require_rows(Read& read) const {
  if (reads_.all == 1) {
    read.samples = read.batch.size();
  } else if (read.batch.size() != read.end - read.begin) {
    throw DataError(fmt::format(
        "{}: the data set made {} rows of {} samples: several processes need a row for each, since "
        "each process reads its own samples of a batch; name a tensor that is not cut in not_cut",
        loader_.name(),
        read.batch.size(),
        read.end - read.begin));
  }
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
  batches_.clear();
  for (int64_t i = 0; ahead_ && i < options_.batches; ++i) {
    batches_.push_back(std::move(*ahead_));
    ahead_ = looks_ahead_ || (i + 1 < options_.batches && !is_last()) ? read() : std::nullopt;
  }
  is_at_end_ = is_last();
  make_group();
  if (!options_.cuts_again) {
    batches_.clear();
  }
}

void GroupedStream::make_group() {
  group_.clear();
  given_ = 0;
  if (options_.ranks.all > 1) {
    take_parts();
  } else {
    take();
  }
  group_.back().ends_epoch = is_at_end_;
}

void GroupedStream::cut_again(int64_t samples) {
  options_.micro_batch = samples;
  make_group();
}

void GroupedStream::take() {
  for (Read& read : batches_) {
    add(options_.cuts_again ? read.batch : std::move(read.batch));
  }
  const auto size = static_cast<int64_t>(group_.size());
  for (int64_t i = 0; i < size; ++i) {
    GroupedBatch& one = group_[static_cast<size_t>(i)];
    one.position = {i == 0, i + 1 == size, size};
    one.counts = {one.batch.size(), tokens_in(one.batch), 0.0, i + 1 == size};
  }
  set_shares();
}

void GroupedStream::add(Batch batch) {
  const std::vector<std::string>& not_cut = loader_.options().not_cut;
  const int64_t most = options_.micro_batch.value_or(batch.size());
  if (options_.cuts_again && batch.size() <= most) {
    // A copy: what hooks and steps write into it is not there when it is cut again.
    group_.emplace_back().batch = samples_of(cut_first(batch, not_cut), 0, batch.size(), not_cut);
  } else if (!options_.micro_batch) {
    group_.emplace_back().batch = std::move(batch);
  } else {
    for (Batch& piece : micro_batches(batch, most, not_cut)) {
      group_.emplace_back().batch = std::move(piece);
    }
  }
}

void GroupedStream::set_shares() {
  if (group_.size() == 1) {
    return;
  }
  std::vector<int64_t> weights;
  for (const GroupedBatch& one : group_) {
    weights.push_back(weight_of(one.batch));
  }
  const std::vector<std::optional<double>> shares = shares_of(weights);
  for (size_t i = 0; i < group_.size(); ++i) {
    group_[i].share = shares[i];
  }
}

int64_t GroupedStream::weight_of(const Batch& batch) const {
  return options_.on_tokens ? tokens_of(batch, loader_.options().pad_labels) : batch.size();
}

void GroupedStream::take_parts() {
  for (Read& read : batches_) {
    read.batch = cut_first(read.batch, loader_.options().not_cut);
    require_rows(read);
  }
  const std::vector<Cut> all = cuts();
  std::vector<int64_t> weights;
  std::vector<int64_t> of_rank(static_cast<size_t>(options_.ranks.all), 0);
  for (const Cut& cut : all) {
    weights.push_back(cut.weight);
    of_rank[static_cast<size_t>(cut.rank)] += cut.weight;
  }
  const auto sum = static_cast<double>(std::accumulate(weights.begin(), weights.end(), int64_t{0}));
  const std::vector<std::optional<double>> shares = shares_of(weights);
  for (size_t i = 0; i < all.size(); ++i) {
    const Cut& cut = all[i];
    const int64_t own = cut.rank - options_.ranks.first;
    if (own < 0 || own >= options_.ranks.own) {
      continue;
    }
    const bool is_first = i == 0 || all[i - 1].rank != cut.rank;
    const bool ends_rank = i + 1 == all.size() || all[i + 1].rank != cut.rank;
    GroupedBatch& one = group_.emplace_back();
    one.batch = batch_of(cut);
    one.position = {
        is_first, ends_rank && own + 1 == options_.ranks.own, static_cast<int64_t>(all.size())};
    one.ends_rank = ends_rank ? 1 + trailing_ones(own) : 0;
    one.share = shares[i];
    one.rank = cut.rank;
    one.share_of_rank = static_cast<double>(of_rank[static_cast<size_t>(cut.rank)]) / sum;
    if (!cut.stands_in) {
      one.counts = {cut.samples, tokens_in(one.batch), 0.0, false};
    } else {
      one.counts.is_update = false;
    }
  }
  count_others(static_cast<int64_t>(all.size()));
}

/// What the process does not have of a group counts with its last batch.
void GroupedStream::count_others(int64_t pieces) {
  Timestamp::Advance left{0, 0, 0.0, true};
  for (const Read& read : batches_) {
    left.samples += read.samples;
    left.tokens += read.tokens();
  }
  for (size_t i = 0; i + 1 < group_.size(); ++i) {
    left.samples -= group_[i].counts.samples;
    left.tokens -= group_[i].counts.tokens;
  }
  group_.back().counts = left;
  group_.back().batches_elsewhere = pieces - static_cast<int64_t>(group_.size());
}

Batch GroupedStream::batch_of(const Cut& cut) const {
  const Read& read = batches_[cut.batch];
  const bool is_all = cut.samples == read.batch.size() && read.samples != cut.samples;
  return is_all ? read.batch
                : samples_of(
                      read.batch, cut.begin - read.begin, cut.samples, loader_.options().not_cut);
}

std::vector<GroupedStream::Cut> GroupedStream::cuts() const {
  const int64_t ranks = options_.ranks.all;
  std::vector<Cut> all;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const size_t before = all.size();
    for (size_t b = 0; b < batches_.size(); ++b) {
      const int64_t size = batches_[b].samples;
      const int64_t end = begin_of_part(size, rank + 1, ranks);
      const int64_t most = options_.micro_batch.value_or(size);
      for (int64_t begin = begin_of_part(size, rank, ranks); begin < end; begin += most) {
        all.push_back({b, begin, std::min(most, end - begin), rank, 0, false});
      }
    }
    if (all.size() == before) {
      Cut stand_in = all.front();
      stand_in.rank = rank;
      stand_in.stands_in = true;
      all.push_back(stand_in);
    }
  }
  for (Cut& cut : all) {
    if (!cut.stands_in) {
      cut.weight = options_.on_tokens ? weight_of(batch_of(cut)) : cut.samples;
    }
  }
  return all;
}

}  // namespace rondo
