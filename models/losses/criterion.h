#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

#include "core/factory.h"

namespace rondo {

/// What the output of a model costs against its target: one number, which training makes small.
/// Models with a `loss` option take any of them: `loss = { Focal = { gamma = 2 } }` in a run file,
/// `options.loss = use<FocalLoss>({2.0})` in a program. A loss holds no parameters.
///
/// A loss of your own derives from Criterion and says `targets` and `losses`.
class Criterion {
 public:
  using Component = Criterion;
  using Options = NoOptions;

  /// What the target of a batch is.
  enum class Targets {
    Classes,  ///< integers [...], numbers of classes; the output is logits [..., classes]
    Shares,   ///< floating, in [0, 1]; the output is logits of the same shape
    Values,   ///< floating; the output has the same shape
  };

  Criterion() = default;
  Criterion(const Criterion&) = delete;
  Criterion& operator=(const Criterion&) = delete;
  virtual ~Criterion() = default;

  virtual Targets targets() const = 0;

  /// Numbers that a model has to predict for each value of the target; more than 1 are a last
  /// dimension of the output.
  virtual int64_t outputs_per_value() const { return 1; }

  /// True when the loss is the mean of -log p, of which a perplexity can be made.
  virtual bool is_negative_log_likelihood() const { return false; }

  /// The loss of a batch: the mean over what counts, 0-dim.
  /// \param name  of the target, for messages
  /// \throws ShapeError    when output and target do not go together
  /// \throws ForwardError  for a class that the output has no logit for
  /// \capture safe
  at::Tensor mean(const at::Tensor& output,
                  const at::Tensor& target,
                  std::string_view name = "target") const;

  /// The same with samples that count by their weights.
  /// \param weights  floating [B], of which some are greater than 0
  at::Tensor mean(const at::Tensor& output,
                  const at::Tensor& target,
                  const at::Tensor& weights,
                  std::string_view name = "target") const;

 protected:
  /// \throws ShapeError  when they do not go together; by default, what `targets` says
  virtual void require_fits(const at::Tensor& output,
                            const at::Tensor& target,
                            std::string_view name) const;

  /// The losses before their mean: [B, ...], floating.
  virtual at::Tensor losses(const at::Tensor& output, const at::Tensor& target) const = 0;

  /// What each of `losses` counts in the mean, of their shape; undefined when all count 1. They are
  /// in `losses` as factors already.
  virtual at::Tensor counts(const at::Tensor& /*target*/) const { return {}; }

  /// The mean of `losses`: sum of losses by sum of counts.
  virtual at::Tensor plain_mean(const at::Tensor& output, const at::Tensor& target) const;
};

}  // namespace rondo
