#pragma once

#include <cstdint>
#include <vector>

#include "core/ignored_label.h"
#include "models/losses/criterion.h"

namespace rondo {

/// Cross entropy of the softmax of logits [..., classes] with integer labels [...], as PyTorch's:
/// with class weights the mean is by the weights of the labels. Labels that are `ignore_index` are
/// left out. A target may also be floating shares of the classes, of the logits' shape: labels that
/// were smoothed or mixed.  \capture safe
/// Source: Szegedy et al. 2016, arXiv:1512.00567, section 7, for the smoothed labels.
class CrossEntropyLoss final : public Criterion {
 public:
  struct Options {
    double label_smoothing = 0.0;  ///< share of a label spread over all classes, in [0, 1)
    std::vector<double> class_weights = {};  ///< one for each class, >= 0; none: all count alike
    int64_t ignore_index = kIgnoredLabel;    ///< a label that is left out
  };

  /// \throws UsageError  for options out of range
  static void check(const Options& options);

  explicit CrossEntropyLoss(const Options& options);

  CrossEntropyLoss() : CrossEntropyLoss(Options()) {}

  Targets targets() const override { return Targets::Classes; }

  bool is_mean_of_labels() const override { return options_.class_weights.empty(); }

  std::optional<int64_t> ignore_index() const override { return options_.ignore_index; }

  bool is_negative_log_likelihood() const override;

 protected:
  void require_fits(const at::Tensor& output,
                    const at::Tensor& target,
                    std::string_view name) const override;
  at::Tensor losses(const at::Tensor& output, const at::Tensor& target) const override;
  at::Tensor counts(const at::Tensor& target) const override;
  at::Tensor plain_mean(const at::Tensor& output, const at::Tensor& target) const override;

 private:
  Options options_;
};

/// Focal loss: cross entropy that counts a label the less, the surer the model is of it:
/// -alpha · (1 - p)^gamma · log p, where p is the softmax of the label. The mean is over the
/// labels. \capture safe Source: Lin et al. 2017, arXiv:1708.02002, equation 5, for several
/// classes.
class FocalLoss final : public Criterion {
 public:
  struct Options {
    double gamma = 2.0;                    ///< 0, which is cross entropy, or >= 1
    std::vector<double> alpha = {};        ///< one for each class, >= 0; none: all are 1
    int64_t ignore_index = kIgnoredLabel;  ///< a label that is left out
  };

  /// \throws UsageError  for options out of range
  static void check(const Options& options);

  explicit FocalLoss(const Options& options);

  Targets targets() const override { return Targets::Classes; }

  std::optional<int64_t> ignore_index() const override { return options_.ignore_index; }

 protected:
  at::Tensor losses(const at::Tensor& output, const at::Tensor& target) const override;
  at::Tensor counts(const at::Tensor& target) const override;

 private:
  Options options_;
};

/// Dice loss of a segmentation: 1 minus the mean over classes of 2 · |P∩L| / (|P| + |L|), in each
/// sample, where P is the softmax of logits [B, ..., classes] and L the labels [B, ...].
/// \capture safe
/// Source: Milletari et al. 2016, arXiv:1606.04797, without the squares; Sudre et al. 2017,
/// arXiv:1707.03237, for several classes.
class DiceLoss final : public Criterion {
 public:
  struct Options {
    double smooth = 1.0;                   ///< added to numerator and denominator, > 0
    bool background = true;                ///< whether class 0 counts too
    int64_t ignore_index = kIgnoredLabel;  ///< a label that is left out
  };

  /// \throws UsageError  for options out of range
  static void check(const Options& options);

  explicit DiceLoss(const Options& options);

  Targets targets() const override { return Targets::Classes; }

  bool is_mean_of_labels() const override { return false; }

  std::optional<int64_t> ignore_index() const override { return options_.ignore_index; }

 protected:
  void require_fits(const at::Tensor& output,
                    const at::Tensor& target,
                    std::string_view name) const override;
  at::Tensor losses(const at::Tensor& output, const at::Tensor& target) const override;

 private:
  Options options_;
};

}  // namespace rondo
