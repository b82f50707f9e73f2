#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor_map.h"

namespace bench {

/// Which optimizer a workload takes, with its default numbers.
enum class Rule { SgdMomentum, Adam, AdamW };

class Network : public torch::nn::Module {
 public:
  /// Logits [..., classes].
  virtual at::Tensor forward(const at::Tensor& x) = 0;
};

/// One training step that everybody runs: classification by cross entropy.
struct Workload {
  std::string name;
  Rule rule = Rule::SgdMomentum;
  double lr = 0.01;
  int64_t micro_batches = 1;  ///< whose gradients make one update
  double clip_norm = 0.0;     ///< 0: gradients are not clipped
  bool is_scheduled = false;  ///< the learning rate follows a cosine
  bool is_saved = false;      ///< now and then
  std::function<std::shared_ptr<Network>()> make_network;
  std::function<rondo::TensorMap()> make_batch;  ///< "x" and "label", drawn from the generator
};

const std::vector<Workload>& workloads();

std::vector<std::string> workload_names();

/// \param name  of one of them
const Workload& workload(const std::string& name);

}  // namespace bench
