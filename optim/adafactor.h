#pragma once

#include <array>
#include <vector>

#include "optim/optimizer.h"
#include "optim/optimizer_table.h"

namespace rondo {

/// Keeps the mean of squares of a matrix as one number a row and one a column, and limits the size
/// of a step. Source: torch.optim.Adafactor (Python, from 2.5); Shazeer and Stern 2018,
/// arXiv:1804.04235, Algorithms 4 and 5.
class Adafactor final : public Optimizer {
 public:
  struct Options {
    double lr = 1e-2;                         ///< >= 0; the most that a step is of its parameter
    double beta2_decay = -0.8;                ///< <= 0; the mean takes a share of step^this
    std::array<double, 2> eps = {0.0, 1e-3};  ///< least root of squares (0: the dtype's) and of p
    double d = 1.0;                           ///< > 0; the largest root mean square of an update
    double weight_decay = 0.0;                ///< >= 0; decoupled, times lr
    std::vector<ParamGroupOptions> params = {};  ///< parameters with numbers of their own
    bool decay_biases_and_norms = true;          ///< false: spares parameters of < 2 dimensions
  };

  /// \throws UsageError  for a value out of its range
  explicit Adafactor(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(Adafactor(options)); }

  static const OptimizerTable<Options>& table();

 protected:
  void update(ParamGroup& group) override;
  std::vector<StateShape> states_of(const NamedTensor& parameter) const override;
};

}  // namespace rondo
