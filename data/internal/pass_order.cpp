#include "data/internal/pass_order.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/random.h"

namespace rondo::detail {

namespace {

std::vector<int64_t> drawn(const OrderRule& rule, int64_t epoch) {
  constexpr uint64_t kStream = 0x6472617773;  // apart from that of `permutation`
  const std::vector<double>& sums = *rule.weight_sums;
  KeyedRandom random(rule.seed, static_cast<uint64_t>(epoch), kStream);
  const double most = std::nextafter(sums.back(), 0.0);  // where the product is rounded up
  std::vector<int64_t> order(static_cast<size_t>(rule.draws));
  for (int64_t& number : order) {
    const double at = std::min(random.uniform() * sums.back(), most);
    number = std::upper_bound(sums.begin(), sums.end(), at) - sums.begin();
  }
  return order;
}

}  // namespace

PassOrder::PassOrder(const OrderRule& rule, int64_t epoch)
    : size_(rule.size()), batch_size_(rule.batch_size), drop_last_(rule.drop_last) {
  if (rule.weight_sums) {
    order_ = drawn(rule, epoch);
  } else if (rule.shuffle) {
    order_ = permutation(rule.samples, rule.seed, epoch);
  }
  if (rule.buckets) {
    fill_buckets(*rule.buckets);
  }
}

/// A batch stands where its last sample was found; short ones stand at the end.
void PassOrder::fill_buckets(const Buckets& buckets) {
  std::vector<std::vector<int64_t>> open(buckets.batch_sizes.size());
  std::vector<int64_t> order;
  order.reserve(static_cast<size_t>(size_));
  const auto close = [&](std::vector<int64_t>& batch) {
    order.insert(order.end(), batch.begin(), batch.end());
    ends_.push_back(static_cast<int64_t>(order.size()));
    batch.clear();
  };
  for (int64_t place = 0; place < size_; ++place) {
    const int64_t sample = number(place);
    const auto bucket = static_cast<size_t>(buckets.of_sample[static_cast<size_t>(sample)]);
    open[bucket].push_back(sample);
    if (static_cast<int64_t>(open[bucket].size()) == buckets.batch_sizes[bucket]) {
      close(open[bucket]);
    }
  }
  for (std::vector<int64_t>& rest : open) {
    if (!rest.empty() && !drop_last_) {
      close(rest);
    }
  }
  order_ = std::move(order);
  size_ = static_cast<int64_t>(order_.size());
  batch_size_ = 0;
}

int64_t PassOrder::batch_at(int64_t place) const {
  if (batch_size_ == 0) {
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), place);
    return end == ends_.end() ? 0 : *end - place;
  }
  const int64_t count = std::min(batch_size_, size_ - place);
  return count <= 0 || (drop_last_ && count < batch_size_) ? 0 : count;
}

int64_t PassOrder::batches_from(int64_t place) const {
  if (batch_size_ == 0) {
    return ends_.end() - std::upper_bound(ends_.begin(), ends_.end(), place);
  }
  const int64_t left = std::max<int64_t>(size_ - place, 0);
  return left / batch_size_ + (left % batch_size_ != 0 && !drop_last_ ? 1 : 0);
}

}  // namespace rondo::detail
