#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/factory.h"
#include "data/dataset.h"
#include "data/derived/parts.h"

namespace rondo {

/// Windows over series of rows, each with what comes behind it: what a forecast learns from. The
/// rows of each part are one series, in their order, and no window crosses from one into the next.
/// A sample has "features", the rows of the window, and "label", those behind it, float32.
class Windows final : public Dataset {
 public:
  struct Options {
    std::vector<Factory<DataSource>> parts = {};  ///< at least one; each a series
    std::string tensor = "features";  ///< of the parts: a row's numbers, floating or integer
    std::vector<std::string> target_columns = {};  ///< names of those to forecast; all when empty
    int64_t length = 0;                            ///< rows of a window, >= 1; must be given
    int64_t horizon = 1;                           ///< rows behind it, >= 1
    int64_t stride = 1;                            ///< from one window to the next, >= 1
    /// "features" [length · columns], else [length, columns]; "label" likewise, and [] for one
    /// number.
    bool flat = true;
    /// Tensor of the parts, or column of their tables, with the time of a row, one number; dates
    /// count in seconds. "" for none. Rows further apart than `max_gap` end a series.
    std::string time = {};
    double max_gap = 0.0;  ///< > 0 where `time` is given
    /// "all", or "train", "val" and "test": the first windows of each series, those behind them,
    /// and the last. No row of a label of one is in another. Must be given where `val` or `test` is
    /// above 0; else all.
    std::optional<std::string> part = {};
    double val = 0.0;   ///< share of the rows that validate, in [0, 1)
    double test = 0.0;  ///< share of the rows that test, in [0, 1)
  };

  /// Reads every row. \throws UsageError  for options out of their range
  /// \throws DataError  for rows that are no numbers, a column that is not there, missing values of
  ///                    the time, or when there is no window
  explicit Windows(const Options& options);

  int64_t size() const override { return static_cast<int64_t>(starts_.size()); }

  Sample get(int64_t index) const override;
  Batch get_batch(const std::vector<int64_t>& indices) const override;

  /// Features and targets of a sample.
  DatasetFacts facts() const override;

  /// What the parts learnt, and the shares that validated and tested.
  StateDict fitted() const override;

  /// \throws ConfigError  when other shares validate or test than where it was learnt
  void take_fitted(const StateDict& fitted) override;

  DatasetNotes notes() const override { return parts_.notes(); }

 private:
  /// Rows in sequence: a part, or what gaps cut off it.
  struct Series {
    int64_t begin;
    int64_t end;
  };

  void find_series();
  void split_at_gaps(const std::vector<double>& times, int64_t begin);
  int64_t end_of_training(const Series& series) const;
  void learn();
  void read();
  void add_windows(const Series& series);
  std::vector<DatasetFacts::Target> scales() const;
  void find_targets(const std::vector<std::string>& names);

  Options options_;
  detail::Parts parts_;
  std::vector<Series> series_;
  at::Tensor rows_;  // float32 [all rows, columns]
  std::vector<std::string> names_;
  std::vector<int64_t> targets_;  // columns to forecast
  std::vector<int64_t> starts_;   // the first row of each window
};

}  // namespace rondo
