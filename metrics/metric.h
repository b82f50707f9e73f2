#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/factory.h"
#include "core/tensor_map.h"

namespace rondo {

/// Which values of a metric are better.
enum class Better { Lower, Higher };

/// A number gathered over batches: those of a validation, or those of training between two log
/// steps. Its state is tensors that `update` changes in place inside the step, so that it is
/// recorded with the step.
class Metric {
 public:
  using Component = Metric;
  using Options = NoOptions;
  using NamedTensor = std::pair<std::string, at::Tensor>;
  using Value = std::pair<std::string, double>;

  /// A config may give it a `label`, the name that it is logged under: see Factory::labelled.
  static constexpr bool kTakesLabel = true;

  /// The tensors that `update` needs, by name.
  struct Needs {
    std::vector<std::string> outputs;
    std::vector<std::string> batch;
  };

  Metric() = default;
  Metric(const Metric&) = delete;
  Metric& operator=(const Metric&) = delete;
  virtual ~Metric() = default;

  /// As it is logged, such as "accuracy".
  virtual std::string name() const = 0;

  /// Which values are better, for callbacks that watch the metric; nothing where that depends.
  virtual std::optional<Better> better() const { return std::nullopt; }

  /// A batch that lacks one of them, such as the labels, is left out. By default one without a
  /// loss.
  virtual Needs needs() const { return {{"loss"}, {}}; }

  /// Adds one batch to the state.
  /// \capture safe: in-place tensor work on the state
  virtual void update(const Outputs& outputs, const Batch& batch) = 0;

  /// The value over everything added since the last reset; NaN when nothing was.  \capture host
  /// only
  virtual double compute() const = 0;

  /// What is logged: each as `<name>/<key>`, or as `<name>` where the key is empty. For a metric of
  /// several numbers, such as one for each class.  \capture host only
  virtual std::vector<Value> values() const { return {{"", compute()}}; }

  /// The tensors of the state, by name, the same ones for the life of the metric.
  virtual std::vector<NamedTensor> state() = 0;

  /// Sets the state to its beginning, in place.  \capture host only
  virtual void reset() = 0;

  /// Moves the state to `device`, before the first update.
  virtual void to(c10::Device device) = 0;
};

}  // namespace rondo
