#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/factory.h"

namespace rondo {

/// A loss function: maps a model's output and its target to one number, which training minimises.
/// Models with a `loss` option take any of them: `loss = { Focal = { gamma = 2 } }` in a run file,
/// `options.loss = use<FocalLoss>({2.0})` in a program. A loss holds no parameters.
///
/// Your own loss derives from Criterion and overrides `targets` and `losses`.
class Criterion {
 public:
  using Component = Criterion;
  using Options = NoOptions;

  /// The kind of target.
  enum class Targets {
    Classes,  ///< integers [...], class indices; the output is logits [..., classes]
    Shares,   ///< floating, in [0, 1]; the output is logits of the same shape
    Values,   ///< floating; the output has the same shape
  };

  Criterion() = default;
  Criterion(const Criterion&) = delete;
  Criterion& operator=(const Criterion&) = delete;
  virtual ~Criterion() = default;

  virtual Targets targets() const = 0;

  /// Numbers that a model must predict for each value of the target; if more than 1, they are the
  /// last dimension of the output.
  virtual int64_t outputs_per_value() const { return 1; }

  /// The class that does not count, where there is one.
  virtual std::optional<int64_t> ignore_index() const { return std::nullopt; }

  /// Whether the mean is over labels that count alike.
  virtual bool is_mean_of_labels() const { return true; }

  /// True when the loss is the mean of -log p, so that it gives a perplexity.
  virtual bool is_negative_log_likelihood() const { return false; }

  /// The loss of a batch: the mean over all counted values, 0-dim.
  /// \param name  of the target, for messages
  /// \throws ShapeError    when output and target do not fit together
  /// \throws ForwardError  for a class that the output has no logit for
  /// \capture safe
  at::Tensor mean(const at::Tensor& output,
                  const at::Tensor& target,
                  std::string_view name = "target") const;

  /// The same with weighted samples.
  /// \param weights  floating [B], at least one of them > 0
  at::Tensor mean(const at::Tensor& output,
                  const at::Tensor& target,
                  const at::Tensor& weights,
                  std::string_view name = "target") const;

 protected:
  /// Checks that output and target fit together, by default as `targets` says.
  /// \throws ShapeError  when they do not
  virtual void require_fits(const at::Tensor& output,
                            const at::Tensor& target,
                            std::string_view name) const;

  /// The losses before their mean: [B, ...], floating.
  virtual at::Tensor losses(const at::Tensor& output, const at::Tensor& target) const = 0;

  /// The weight of each of `losses` in the mean, in their shape; undefined when all are 1. `losses`
  /// already includes them as factors.
  virtual at::Tensor counts(const at::Tensor& /*target*/) const { return {}; }

  /// The mean of `losses`: sum of losses divided by sum of counts.
  virtual at::Tensor plain_mean(const at::Tensor& output, const at::Tensor& target) const;
};

}  // namespace rondo
