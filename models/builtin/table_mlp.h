#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/auto_option.h"
#include "core/dataset_facts.h"
#include "models/losses/criterion.h"
#include "models/wrapped_model.h"

namespace rondo {

/// A network for tables: numbers and embedded categories, then layers with batch norm, activation
/// and dropout, added to their input where the widths allow. Returns "loss" when the batch has
/// labels, and
/// - for classes "logits", [B, classes]: of two of them the first is 0, so that the second is the
///   only output of the network
/// - for values "prediction", [B] or [B, targets]; with a loss of quantiles these are the last
///   dimension
/// A batch's "weight", [B], weights its samples in the loss.
/// \capture safe
/// Source: Gorishniy et al. 2021, arXiv:2106.11959, for the embeddings and the residuals.
class TableMlp final : public WrappedModel {
 public:
  struct Options {
    Auto<int64_t> features = {};                 ///< numbers of a sample, >= 0
    Auto<std::vector<int64_t>> categories = {};  ///< codes of each column of words, each >= 1
    Auto<int64_t> classes = {};                  ///< to tell apart, >= 2; 0: values are predicted
    Auto<int64_t> targets = {};                  ///< values to predict, >= 1; 0: classes
    std::vector<int64_t> hidden = {128, 128};    ///< widths of the layers, each >= 1
    std::string activation = "relu";             ///< "relu", "gelu" (exact) or "tanh"
    double dropout = 0.0;                        ///< share of hidden units, in [0, 1)
    bool batch_norm = true;                      ///< after each hidden layer
    bool residual = true;                        ///< add a layer's input where widths are equal
    int64_t embedding = 16;                      ///< widest embedding of a category, >= 1
    Factory<Criterion> loss = {};                ///< none: cross entropy of classes, MSE of values
    Auto<std::vector<double>> class_weights =
        std::vector<double>();  ///< in the loss; none: classes count alike
  };

  /// \throws UsageError  for options out of range, and for those that are still "auto"
  explicit TableMlp(const Options& options);

  /// Fills in what is "auto".
  /// \throws UsageError  naming the option and the fact that the data does not know
  static void resolve(Options& options, const DatasetFacts& facts);
};

}  // namespace rondo
