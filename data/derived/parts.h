#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/factory.h"
#include "data/dataset.h"
#include "data/derived/scaled_columns.h"

namespace rondo::detail {

/// A sample of one of several data sets.
struct PartIndex {
  size_t part = 0;
  int64_t index = 0;
};

/// Data sets that make up another one: built, asked and taught together. Means, words and classes
/// are learnt from the first one.
class Parts {
 public:
  /// \param owner  for messages: "Concat"
  /// \throws UsageError  when there are none, or one is iterable
  /// \throws DataError   when they do not go together
  Parts(std::string owner, const std::vector<Factory<DataSource>>& factories);

  size_t count() const { return parts_.size(); }

  const Dataset& operator[](size_t part) const { return *parts_[part]; }

  std::vector<int64_t> sizes() const;

  /// One batch of these samples, in their order.
  Batch gather(const std::vector<PartIndex>& samples, int64_t epoch) const;

  DatasetFacts facts() const { return parts_.front()->facts(); }

  /// What the first part learnt, with how each part was split.
  StateDict fitted() const;

  void take_fitted(const StateDict& fitted);

  /// The first part learns again, from these of its samples alone; the others take that over.
  void learn_from(const std::vector<int64_t>& samples);

  /// Of the first part.
  std::vector<DatasetFacts::Target> feature_scales() const;

  DatasetNotes notes() const;

 private:
  void teach(size_t part) const;
  void require_same_facts() const;

  std::string owner_;
  std::vector<std::unique_ptr<Dataset>> parts_;
};

/// A data set whose samples are those of others.
class PartsDataset : public Dataset, public ScaledColumns {
 public:
  PartsDataset(std::string owner, const std::vector<Factory<DataSource>>& factories)
      : parts_(std::move(owner), factories) {}

  Sample get(int64_t index) const override;
  std::string sample_name(int64_t index) const override;
  Batch get_batch(const std::vector<int64_t>& indices) const override;
  Batch get_epoch_batch(const std::vector<int64_t>& indices, int64_t epoch) const override;
  std::vector<double> numbers(const std::string& name) const override;
  std::vector<int64_t> lengths(const std::vector<std::string>& names) const override;

  DatasetFacts facts() const override { return parts_.facts(); }

  StateDict fitted() const override { return parts_.fitted(); }

  void take_fitted(const StateDict& fitted) override {
    parts_.take_fitted(fitted);
    arrange();
  }

  void learn_from(const std::vector<int64_t>& samples) override;

  std::vector<DatasetFacts::Target> feature_scales() const override {
    return parts_.feature_scales();
  }

  DatasetNotes notes() const override { return parts_.notes(); }

 protected:
  /// Called when the sizes of the parts may have changed.
  virtual void arrange() = 0;

  /// \param index  in [0, size())
  virtual PartIndex place(int64_t index) const = 0;

  const Parts& parts() const { return parts_; }

 private:
  std::vector<PartIndex> places(const std::vector<int64_t>& indices) const;

  Parts parts_;
};

}  // namespace rondo::detail
