#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

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

}  // namespace rondo
