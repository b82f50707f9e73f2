#pragma once

#include <torch/nn/modules/activation.h>

namespace bench {

/// What torch::nn::functional::multi_head_attention_forward does once it has asked on the host
/// whether query and key are equal: from one sequence to another, or within one.
/// \param from, to  [length, batch, width]
/// \param mask      added to the scores; undefined: none
at::Tensor attend_unasked(torch::nn::MultiheadAttentionImpl& attention,
                          const at::Tensor& from,
                          const at::Tensor& to,
                          const at::Tensor& mask = {});

}  // namespace bench
