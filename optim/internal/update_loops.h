#pragma once

#include <cstdint>

#include "core/vector_loop.h"

namespace rondo::detail {

/// Numbers of one SGD update, rounded once from double as LibTorch rounds its scalars.
template <class T>
struct SgdNumbers {
  T minus_lr;
  T weight_decay;  ///< 0 skips the decay: adding 0 * p would turn -0 into +0 and inf into NaN
  T momentum;
  T one_minus_dampening;
  bool is_nesterov;
  bool is_first;  ///< the momentum buffer takes the gradient as it is
};

/// \param buffer  momentum; null for an update without
template <class T>
struct SgdTensors {
  T* param;
  const T* grad;
  T* buffer;
};

/// Updates `count` elements. Numbers too small for the format's exponent (below 1.2e-38 in float)
/// count as zero (docs/decisions/012).
/// Source: torch::optim::SGD of LibTorch 1.13, with the fused multiply-adds of its AVX2 kernels.
template <class T>
void sgd_loop(const SgdNumbers<T>& numbers,
              SgdTensors<T> tensors,
              int64_t count,
              InstructionSet set);

/// Numbers of one Adam update.
template <class T>
struct AdamNumbers {
  T shrink;        ///< the decoupled weight decay, 1 - lr * decay; 1 for none
  T weight_decay;  ///< added to the gradient; 0 skips it
  T beta1;
  T one_minus_beta1;
  T beta2;
  T one_minus_beta2;
  T sqrt_bias_correction2;
  T eps;
  T minus_step_size;
};

/// \param max_exp_avg_sq  of AMSGrad; null for an update without
template <class T>
struct AdamTensors {
  T* param;
  const T* grad;
  T* exp_avg;
  T* exp_avg_sq;
  T* max_exp_avg_sq;
};

/// Updates `count` elements; too small numbers count as zero, as above, unless eps is below 1e-10.
/// Source: torch::optim::Adam and AdamW of LibTorch 1.13; Kingma and Ba 2015, arXiv:1412.6980;
/// Loshchilov and Hutter 2019, arXiv:1711.05101; Reddi et al. 2018, arXiv:1904.09237 (AMSGrad).
template <class T>
void adam_loop(const AdamNumbers<T>& numbers,
               AdamTensors<T> tensors,
               int64_t count,
               InstructionSet set);

/// Multiplies `count` elements by a number, with all of the format's exponents: scaled gradients
/// stay visible.
template <class T>
void scale_loop(T by, T* elements, int64_t count, InstructionSet set);

}  // namespace rondo::detail
