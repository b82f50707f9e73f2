#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/named_tensor.h"

namespace rondo {

/// Scales gradients in place so that their joint L2 norm is at most `max_norm`.
/// \param grads     any shapes, one device; none: nothing to do
/// \param max_norm  > 0
/// \return norm before scaling, 0-dim (no host sync); undefined without gradients  \capture safe
/// Source: Pascanu et al. 2013, arXiv:1211.5063, Algorithm 1; same arithmetic as
/// torch.nn.utils.clip_grad_norm_
at::Tensor clip_by_norm_(const std::vector<at::Tensor>& grads, double max_norm);

/// Clamps every gradient to [-limit, limit] in place; `limit` > 0.  \capture safe
void clip_by_value_(const std::vector<at::Tensor>& grads, double limit);

/// Adaptive clipping: scales each unit's gradient down in place so that its L2 norm is at most
/// `ratio` times that of the unit's weights, which count as 0.001 at least. A unit is a row of a
/// matrix, an output channel of a convolution, and all of a vector.
/// \param parameters  with their gradients, which may be undefined
/// \param ratio       > 0, such as 0.01  \capture safe
/// Source: Brock et al. 2021, arXiv:2102.06171, section 4
void clip_by_ratio_(const NamedTensors& parameters, double ratio);

}  // namespace rondo
