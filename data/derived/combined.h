#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/derived/parts.h"

namespace rondo {

/// Some samples of a data set. From C++, `DataLoader::first` is shorter for the first ones.
class Subset final : public detail::PartsDataset {
 public:
  struct Options {
    Factory<DataSource> of = {};        ///< must be given; reached by index
    int64_t from = 0;                   ///< number of the first sample that is taken
    std::optional<int64_t> count = {};  ///< samples from there; all when absent
    int64_t every = 1;                  ///< takes one of so many, >= 1
    std::vector<int64_t> indices = {};  ///< instead: the numbers of the samples, in this order
  };

  /// \throws UsageError  when a sample is not there, or none is taken
  explicit Subset(const Options& options);

  int64_t size() const override { return size_; }

 protected:
  void arrange() override;
  detail::PartIndex place(int64_t index) const override;

 private:
  Options options_;
  int64_t size_ = 0;
};

/// The samples of several data sets, one data set after the other.
class Concat final : public detail::PartsDataset {
 public:
  struct Options {
    std::vector<Factory<DataSource>> parts = {};  ///< at least one; reached by index
  };

  explicit Concat(const Options& options);

  int64_t size() const override { return ends_.back(); }

 protected:
  void arrange() override;
  detail::PartIndex place(int64_t index) const override;

 private:
  std::vector<int64_t> ends_;  // number of samples up to the end of each part
};

/// The samples of several data sets by turns, in rounds that take a share of each.
class Interleave final : public detail::PartsDataset {
 public:
  struct Options {
    std::vector<Factory<DataSource>> parts = {};  ///< at least one; reached by index
    std::vector<int64_t> shares = {};  ///< samples of each part in a round, >= 1; 1 when empty
    /// "shortest" ends with the last whole round of the part that ends first. "longest" gives all
    /// samples of the part that ends last; others begin again.
    std::string until = "shortest";
  };

  /// \throws UsageError  when an option is out of its range, or a part has too few samples
  explicit Interleave(const Options& options);

  int64_t size() const override;

 protected:
  void arrange() override;
  detail::PartIndex place(int64_t index) const override;

 private:
  Options options_;
  std::vector<int64_t> sizes_;
  std::vector<detail::PartIndex> round_;
  int64_t rounds_ = 0;
};

}  // namespace rondo
