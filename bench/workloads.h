#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/factory.h"
#include "core/tensor_map.h"
#include "models/model.h"

namespace bench {

/// Which optimizer a workload takes, with its default numbers.
enum class Rule { SgdMomentum, Adam, AdamW };

class Network : public torch::nn::Module {
 public:
  /// The 0-dim loss of a batch.
  virtual at::Tensor loss(const rondo::Batch& batch) = 0;
};

/// Cross entropy of logits [..., classes] with the batch's "label".
class Classifier : public Network {
 public:
  virtual at::Tensor forward(const at::Tensor& x) = 0;

  at::Tensor loss(const rondo::Batch& batch) final;
};

/// One training step that everybody runs.
struct Workload {
  std::string name;
  Rule rule = Rule::SgdMomentum;
  double lr = 0.01;
  int64_t micro_batches = 1;  ///< whose gradients make one update
  double clip_norm = 0.0;     ///< 0: gradients are not clipped
  bool is_scheduled = false;  ///< the learning rate follows a cosine
  bool is_saved = false;      ///< now and then
  std::function<std::shared_ptr<Network>()> make_network;
  std::function<rondo::Batch()> make_batch;  ///< drawn from the generator
};

/// Those that were tuned for, then the zoo.
const std::vector<Workload>& workloads();

std::vector<std::string> workload_names();

/// \param name  of one of them
const Workload& workload(const std::string& name);

/// Its network, as a Trainer takes it.
rondo::Factory<rondo::Model> model_of(const Workload& w);

}  // namespace bench
