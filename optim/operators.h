#pragma once

namespace rondo {

/// Registers the operators of rondo's optimizers (`rondo::adam_`, …) with LibTorch's dispatcher for
/// the life of the process. Any thread may call it. Optimizers call it themselves; a program that
/// loads a recorded step without one calls it first.
///
/// Each updates a list of parameters in place from a list of gradients, in one pass over the
/// memory. The operator reads every number from a 0-dim float64 tensor when it runs, so a recorded
/// call bakes in none of them. For dense float32 and float64 tensors the results are bit-identical
/// to `torch::optim` under LibTorch 1.13 with its AVX2 or AVX-512 kernels, on any machine; other
/// dtypes and strides use LibTorch's own operators.
void register_optimizer_operators();

}  // namespace rondo
