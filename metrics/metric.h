#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/factory.h"
#include "core/media.h"
#include "core/tensor_map.h"

namespace rondo {

/// Which values of a metric are better.
enum class Better { Lower, Higher };

/// A number accumulated over the batches of a validation, or of training between two log steps.
/// `update` changes its state, which is tensors, in place inside the step, so that it is recorded
/// with the step.
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

  /// The name under which it is logged, such as "accuracy".
  virtual std::string name() const = 0;

  /// Which values are better, for callbacks that watch the metric; nothing if it depends.
  virtual std::optional<Better> better() const { return std::nullopt; }

  /// The label that the model's loss leaves out, told before the first update. A metric whose
  /// options name no label to leave out takes this one.
  virtual void ignore(int64_t /*label*/) {}

  /// The tensors that `update` reads; by default the loss. A batch that lacks one of them, such as
  /// the labels, is skipped.
  virtual Needs needs() const { return {{"loss"}, {}}; }

  /// Adds one batch to the state.
  /// \capture safe: in-place tensor work on the state
  virtual void update(const Outputs& outputs, const Batch& batch) = 0;

  /// The value over everything added since the last reset; NaN if nothing was added.  \capture host
  /// only
  virtual double compute() const = 0;

  /// The values to log, each as `<name>/<key>`, or as `<name>` if the key is empty. For a metric of
  /// several numbers, such as one per class.  \capture host only
  virtual std::vector<Value> values() const { return {{"", compute()}}; }

  /// What is logged besides numbers at the end of a validation, such as a curve; each as
  /// `<name>/<its name>`.  \capture host only
  virtual std::vector<Media> media() const { return {}; }

  /// The tensors of the state, by name, the same ones for the life of the metric.
  virtual std::vector<NamedTensor> state() = 0;

  /// Resets the state in place.  \capture host only
  virtual void reset() = 0;

  /// Moves the state to `device`, before the first update.
  virtual void to(c10::Device device) = 0;
};

}  // namespace rondo
