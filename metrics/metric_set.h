#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/media.h"
#include "core/metric_values.h"
#include "core/state_dict.h"
#include "metrics/metric.h"

namespace rondo {

/// Metrics that are given the same batches, each under a name of its own.
class MetricSet {
 public:
  struct Entry {
    std::string name;  ///< as it is logged
    std::unique_ptr<Metric> metric;
    bool is_default = false;  ///< another one may take its place
    bool is_used = false;     ///< a batch since the last reset had what it needs
  };

  /// Adds a metric under its factory's label, or else its own name; replaces a default one of
  /// this name.
  /// \throws UsageError  when the name is taken
  void add(const Factory<Metric>& metric);

  /// The same for one that a later `add` may replace.
  void add_default(const Factory<Metric>& metric);

  const std::vector<Entry>& entries() const { return entries_; }

  /// Tells all which label the model's loss leaves out.
  void ignore(int64_t label);

  /// Moves the state of all to `device`, before the first update.
  void to(c10::Device device);

  /// Adds a batch to each metric that finds what it needs.  \capture safe
  void update(const Outputs& outputs, const Batch& batch);

  /// Notes which ones such a batch was added to.  \capture host only
  void note(const Outputs& outputs, const Batch& batch);

  /// What is logged, of those that were used.  \capture host only
  Metrics values() const;

  /// What is logged besides numbers, likewise.  \capture host only
  std::vector<Media> media() const;

  /// Whether all of them are sums, which processes can add.
  bool are_sums() const;

  /// For each, 1 where it was used since the last reset, else 0.
  std::vector<double> uses() const;

  /// Takes those of all processes: any number but 0 where one of them used it.
  void take_uses(const double* uses);

  /// \capture host only
  void reset();

  /// `<name>/<tensor>`, the same tensors for the life of the set.
  NamedTensors state() const;

  /// What was gathered since the last reset, by the metrics that were used: `<name>` → `<tensor>`.
  StateDict state_dict() const;

  /// \throws CheckpointError  when a metric of the set has sums of another shape in `state`
  void check(const StateDict& state) const;

  /// Goes on with what is in `state`, which `check` has found right. Metrics that are not in it,
  /// have sums of other names there, or are not in the set, are passed over.
  void load(const StateDict& state);

 private:
  void add(const Factory<Metric>& metric, bool is_default);

  std::vector<Entry> entries_;
};

}  // namespace rondo
