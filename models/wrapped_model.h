#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "models/model.h"

namespace rondo {

/// A model around another one that only its own .cpp knows: who includes its header does not
/// include torch/nn, which takes a compiler longer than all of rondo.
class WrappedModel : public Model {
 public:
  torch::nn::Module& module() final { return inner_->module(); }

  Outputs forward(const Batch& batch) final { return inner_->forward(batch); }

  const Criterion* criterion() const final { return inner_->criterion(); }

  std::vector<Factory<Metric>> metrics() const final { return inner_->metrics(); }

 protected:
  explicit WrappedModel(std::unique_ptr<Model> inner) : inner_(std::move(inner)) {}

 private:
  std::unique_ptr<Model> inner_;
};

}  // namespace rondo
