#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>
#include <string>
#include <vector>

namespace rondo::detail {

/// Stacked recurrent layers of plain tensor operators, the same in every LibTorch version. Each
/// sequence begins with a state of zeros. PyTorch's gates, in its order: input, forget, cell and
/// output of an LSTM; reset, update and new of a GRU.
/// \capture baked: the number of steps
class Recurrence {
 public:
  struct Options {
    std::string cell = "lstm";  ///< "lstm" or "gru"
    int64_t layers = 1;
    int64_t inputs = 1;
    int64_t width = 1;     ///< of the state
    double dropout = 0.0;  ///< of what each layer but the last gives on
  };

  /// Makes "input<i>" and "hidden<i>", to be registered in the owner.
  explicit Recurrence(const Options& options);

  void add_to(torch::nn::Module& owner);

  /// \param x  [B, T, inputs]
  /// \return [B, T, width]
  at::Tensor forward(at::Tensor x, bool is_training);

 private:
  struct Layer {
    torch::nn::Linear input;   // to the gates, of all steps at once
    torch::nn::Linear hidden;  // to the gates; only a GRU has a bias here
  };

  at::Tensor run_lstm(Layer& layer, const at::Tensor& x) const;
  at::Tensor run_gru(Layer& layer, const at::Tensor& x) const;

  Options options_;
  std::vector<Layer> layers_;
};

}  // namespace rondo::detail
