#include "models/module_fingerprint.h"

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <string>

#include "core/fingerprint.h"

namespace rondo {

namespace {

using torch::nn::Module;
using Tensors = torch::OrderedDict<std::string, at::Tensor>;
using Children = torch::OrderedDict<std::string, std::shared_ptr<Module>>;

// LibTorch gives copies of these dictionaries only, with all their names, which would take longer
// than many a step. C++ lets an explicit instantiation name private members.
const Tensors& parameters_of(const Module& module);
const Tensors& buffers_of(const Module& module);
const Children& children_of(const Module& module);

template <Tensors Module::*kParameters, Tensors Module::*kBuffers, Children Module::*kChildren>
struct Parts {
  friend const Tensors& parameters_of(const Module& module) { return module.*kParameters; }

  friend const Tensors& buffers_of(const Module& module) { return module.*kBuffers; }

  friend const Children& children_of(const Module& module) { return module.*kChildren; }
};

template struct Parts<&Module::parameters_, &Module::buffers_, &Module::children_>;

void add_tensor(Fingerprint& fingerprint, const at::Tensor& tensor) {
  const at::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
  fingerprint.add(impl, impl->requires_grad());
}

}  // namespace

void add_module(Fingerprint& fingerprint, const Module& module) {
  fingerprint.add(&module, module.is_training());
  const Tensors& parameters = parameters_of(module);
  fingerprint.add(parameters.size());
  for (const Tensors::Item& parameter : parameters) {
    add_tensor(fingerprint, *parameter);
  }
  const Tensors& buffers = buffers_of(module);
  fingerprint.add(buffers.size());
  for (const Tensors::Item& buffer : buffers) {
    add_tensor(fingerprint, *buffer);
  }
  const Children& children = children_of(module);
  fingerprint.add(children.size());
  for (const Children::Item& child : children) {
    add_module(fingerprint, **child);
  }
}

}  // namespace rondo
