#pragma once

#include <torch/nn/module.h>

#include "models/model.h"

namespace rondo {

/// A model that is a `torch::nn::Module` itself: it registers its children in its constructor and
/// sees the whole batch. The Trainer holds it by `unique_ptr`, so torch functions that hand out a
/// `shared_ptr` to the module itself (`modules()`, `named_modules()` including self) throw: call
/// them with `include_self = false`.
class ModuleModel : public Model, public torch::nn::Module {
 public:
  torch::nn::Module& module() final { return *this; }
};

}  // namespace rondo
