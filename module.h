#pragma once

// What a program needs that trains its own torch modules, besides <rondo/rondo.h>: a model that is
// a torch::nn::Module, and the wrapping of an existing one. It reads LibTorch's module headers,
// which take longer than all of rondo's; layers come from <torch/nn/modules/linear.h> and its
// neighbours.

#include "models/from_module.h"
#include "models/module_model.h"
#include "models/with_loss.h"
