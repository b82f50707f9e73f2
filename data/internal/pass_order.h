#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace rondo::detail {

/// Samples by the length that they are padded to.
struct Buckets {
  std::vector<int64_t> of_sample;    ///< the bucket of each sample
  std::vector<int64_t> batch_sizes;  ///< samples of a batch of each bucket, each >= 1
};

/// What the order of a loader's passes follows from.
struct OrderRule {
  int64_t samples = 0;  ///< of the data: the first ones
  int64_t batch_size = 1;
  bool shuffle = false;
  bool drop_last = false;
  uint64_t seed = 0;
  /// Sums of the samples' weights up to each, for samples that are drawn; null: each comes once.
  std::shared_ptr<const std::vector<double>> weight_sums = nullptr;
  int64_t draws = 0;                                 ///< samples of a pass that is drawn
  std::shared_ptr<const Buckets> buckets = nullptr;  ///< null: batches of any samples

  /// Samples that a pass gives, those of batches that are dropped included.
  int64_t size() const { return weight_sums ? draws : samples; }
};

/// Which samples one pass gives, in which batches: a pure function of the rule and the epoch.
class PassOrder {
 public:
  PassOrder(const OrderRule& rule, int64_t epoch);

  /// The sample at this place of the pass.
  int64_t number(int64_t place) const {
    return order_.empty() ? place : order_[static_cast<size_t>(place)];
  }

  /// Samples of the batch that begins at `place`; 0 at the end. Where no batch begins, because the
  /// loader made others when the place was saved, it is what is left of the batch.
  int64_t batch_at(int64_t place) const;

  /// Batches from `place` on.
  int64_t batches_from(int64_t place) const;

 private:
  void fill_buckets(const Buckets& buckets);

  int64_t size_;
  int64_t batch_size_;
  bool drop_last_;
  std::vector<int64_t> order_;  // empty: that of the data
  std::vector<int64_t> ends_;   // of the batches; empty: every `batch_size_` samples
};

}  // namespace rondo::detail
