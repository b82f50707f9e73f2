#pragma once

namespace torch::nn {
class Module;
}

namespace rondo {

class Fingerprint;

/// Adds what a recorded step depends on in a module, besides the memory of its tensors: the
/// modules in it and their modes, the parameters and buffers that they have, and which of them
/// require a gradient. Allocates nothing: it is called before each step.
void add_module(Fingerprint& fingerprint, const torch::nn::Module& module);

}  // namespace rondo
