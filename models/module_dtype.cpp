#include "models/module_dtype.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include "models/model_state.h"

namespace rondo {

void set_floating_dtype(torch::nn::Module& module, at::ScalarType dtype) {
  const at::NoGradGuard no_grad;
  for (const NamedTensors& tensors : {named_parameters(module), named_buffers(module)}) {
    for (const NamedTensor& tensor : tensors) {
      if (tensor.second.defined() && tensor.second.is_floating_point() &&
          tensor.second.scalar_type() != dtype) {
        tensor.second.set_data(tensor.second.detach().to(dtype));
      }
    }
  }
}

}  // namespace rondo
