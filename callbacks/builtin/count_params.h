#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "callbacks/callback.h"

namespace rondo {

/// The sizes of a model's tensors.
struct ParameterCounts {
  struct Row {
    std::string type;  ///< "parameter", "buffer", or "group" of several
    std::string name;
    std::string dtype;  ///< "mixed" in a group that differs
    std::string shape;  ///< "3, 4"; "" of a group, or without dimensions
    int64_t elements = 0;
    int64_t bytes = 0;
    int64_t trainable = 0;  ///< elements that are trained
  };

  std::vector<Row> rows;
  int64_t elements = 0;   ///< of all rows, frozen parameters and buffers included
  int64_t trainable = 0;  ///< of the parameters that are trained

  /// Aligned columns and the two totals, for people.
  std::string to_text() const;
};

/// Prints how large a model is, tensor by tensor, when the Trainer is built, keeps the table in
/// `<artifact_dir>/parameter_counts.txt` and logs `parameter_counts/total` and `…/trainable`.
/// Source: CountParams of Cerebras' ModelZoo trainer.
class CountParams final : public Callback {
 public:
  struct Options {
    /// Pairs of a regular expression and what replaces it, applied to the names in order; names
    /// that become equal make one row.
    std::vector<std::vector<std::string>> search_and_replace = {};
    std::string order_by = "";  ///< "" (as in the model), "name" or "elements"
    bool descending = false;
  };

  /// \throws UsageError  for an entry that is no pair, no regular expression, or an unknown order
  explicit CountParams(const Options& options);

  ParameterCounts count(Model& model) const;

  void post_setup(Trainer& trainer) override;

 private:
  std::string replaced(std::string name) const;

  Options options_;
};

}  // namespace rondo
