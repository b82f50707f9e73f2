#pragma once

// Include this after <rondo/rondo.h> to train your own torch modules: models that are a
// torch::nn::Module, and wrappers for existing modules. It includes LibTorch's module headers,
// which take longer to compile than all of rondo's. Layers are in <torch/nn/modules/linear.h> and
// similar headers.

#include "models/from_module.h"
#include "models/module_model.h"
#include "models/recompute.h"
#include "models/with_loss.h"
