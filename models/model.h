#pragma once

#include <vector>

#include "core/factory.h"
#include "core/tensor_map.h"

namespace torch::nn {
class Module;
}

namespace rondo {

class Criterion;
class Metric;

/// A trainable model: a torch module and how it reads a batch. See `ModuleModel` for a model that
/// is a `torch::nn::Module` itself, `from_module` for a plain module and a loss, `ScriptModel` for
/// a TorchScript file. The first two are for your own modules: they are in <rondo/module.h>, which
/// rondo.h leaves out because it includes LibTorch's heavy module headers.
class Model {
 public:
  using Component = Model;
  using Options = NoOptions;

  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  /// Owner of parameters and buffers: what a checkpoint's "model" holds. The same object for the
  /// life of the model.
  virtual torch::nn::Module& module() = 0;

  /// One forward pass. Training needs a 0-dim floating "loss" among the outputs.
  /// \capture safe: tensor work only. Recorded once for train and once for eval mode; values that
  ///          the host reads in it are baked in.
  virtual Outputs forward(const Batch& batch) = 0;

  /// True when its weights come from a file, so that it can be evaluated untrained.
  virtual bool is_from_file() const { return false; }

  /// The loss function that its "loss" is the mean of; null when it is another one.
  virtual const Criterion* criterion() const { return nullptr; }

  /// Metrics of a validation, logged as `<scope>/<name>`.
  virtual std::vector<Factory<Metric>> metrics() const { return {}; }
};

}  // namespace rondo
