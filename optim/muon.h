#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "optim/optimizer.h"
#include "optim/optimizer_table.h"

namespace rondo {

/// Orthogonalises the momentum of each matrix, so that all its directions are learned at one pace.
/// Tensors of more dimensions are matrices of their first one; vectors, and what `adamw` names, are
/// updated as by AdamW. Source: Jordan et al. 2024 (https://kellerjordan.github.io/posts/muon/);
/// torch.optim.Muon (Python, from 2.9).
class Muon final : public Optimizer {
 public:
  struct Options {
    double lr = 0.02;                           ///< >= 0; of matrices
    double momentum = 0.95;                     ///< in [0, 1)
    double weight_decay = 0.0;                  ///< >= 0; decoupled, times the learning rate
    double adamw_lr = 3e-4;                     ///< >= 0; of the rest
    std::array<double, 2> betas = {0.9, 0.95};  ///< each in [0, 1); of the rest
    double eps = 1e-8;                          ///< >= 0; of the rest
    bool nesterov = true;                       ///< look ahead along the momentum
    int64_t ns_steps = 5;                       ///< >= 1; iterations of Newton and Schulz
    std::vector<std::string> adamw = {};  ///< globs of matrices that AdamW updates, such as heads
    std::vector<ParamGroupOptions> params = {};  ///< parameters with numbers of their own
    bool decay_biases_and_norms = true;          ///< false: spares parameters of < 2 dimensions
  };

  /// \throws UsageError  for a value out of its range
  explicit Muon(const Options& options);

  /// \throws UsageError  as the constructor does
  static void check(const Options& options) { static_cast<void>(Muon(options)); }

  static const OptimizerTable<Options>& table();

 protected:
  void update(ParamGroup& group) override;
  std::vector<StateShape> states_of(const NamedTensor& parameter) const override;

 private:
  bool is_matrix(const std::string& name, const at::Tensor& value) const;
  void update_matrix(ParamGroup& group, Parameter& parameter) const;

  Options options_;
};

}  // namespace rondo
