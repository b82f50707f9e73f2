#pragma once

namespace rondo {

/// Makes the operators of rondo's optimizers (`rondo::adam_`, …) known to LibTorch's dispatcher,
/// for as long as the process lives, from whatever thread. Optimizers do it themselves; a program
/// that loads a recorded step without one calls it first.
///
/// Each updates a list of parameters in place from a list of gradients, in one pass over the
/// memory. Every number is read from a 0-dim float64 tensor when the operator runs, so a recorded
/// call bakes none of them. For dense float32 and float64 tensors the bits are those of
/// `torch::optim` under LibTorch 1.13 with its AVX2 or AVX-512 kernels, on any machine; other
/// dtypes and strides go through LibTorch's own operators.
void register_optimizer_operators();

}  // namespace rondo
