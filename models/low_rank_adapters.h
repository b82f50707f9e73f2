#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace torch::nn {
class Module;
}

namespace rondo {

struct LowRankOptions {
  std::vector<std::string> modules = {};     ///< globs of names of layers, at least one
  int64_t rank = 8;                          ///< >= 1
  double alpha = 16.0;                       ///< the update's factor is alpha / rank
  double dropout = 0.0;                      ///< in [0, 1): share of a layer's inputs that its
                                             ///< adapter does not see, one draw for the batch
  std::vector<std::string> also_train = {};  ///< globs of parameters that are trained whole
};

/// Low-rank adapters of the layers of a module. The weight of an adapted layer W becomes
/// `W + alpha/rank B A`, of which A and B are trained; every other parameter is frozen. B is zero
/// at first: the module computes what it did. A and B are parameters of the layer, `lora_A` and
/// `lora_B`.
///
/// Layers that can be adapted are LibTorch's Linear, Conv1d, Conv2d, Conv3d and Embedding, and
/// MultiheadAttention, of which the joint projection of queries, keys and values is: their forward
/// reads the member `weight`, and that member is exchanged. The recurrent layers of LibTorch keep a
/// list of their own, a module of yours may read any tensor, and TorchScript reads its own: those
/// cannot be adapted.
/// Source: Hu et al. 2021, arXiv:2106.09685; dropout of shared inputs as in minLoRA.
class LowRankAdapters {
 public:
  /// Adds the parameters and freezes the others. The module must live longer.
  /// \throws UsageError  for options out of range; when a glob of `modules` picks no layer that can
  ///     be adapted, naming those that can, or one of `also_train` no parameter
  LowRankAdapters(torch::nn::Module& module, const LowRankOptions& options);

  /// From here to `remove`, layers compute with their adapters, which get gradients.
  /// \capture safe
  void install();

  /// Layers have their own weight again.
  void remove();

  /// Layers compute with their adapters as these are now, without gradients, until the next
  /// `install`: for code that calls the module itself.
  void materialize();

  /// Writes the adapters into the weights, which then have the bytes that layers computed with.
  /// \throws UsageError  when they are merged already
  void merge();

  /// Gives back the weights as they were before `merge`.
  /// \throws UsageError  when they are not merged
  void unmerge();

  bool is_merged() const { return is_merged_; }

  /// Names of the adapted layers.
  std::vector<std::string> layers() const;

 private:
  struct Adapter {
    std::string layer;
    torch::nn::Module* module;
    at::Tensor* member;  // which forward reads
    at::Tensor weight;   // the parameter
    at::Tensor a;
    at::Tensor b;
    at::Tensor scale;
    at::Tensor unmerged;  // while merged
  };

  void add(torch::nn::Module& root, const LowRankOptions& options);
  at::Tensor adapted(const Adapter& adapter) const;

  double dropout_;
  std::vector<Adapter> adapters_;
  bool is_merged_ = false;
};

}  // namespace rondo
