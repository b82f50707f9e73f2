#include "tracing/kernels/own_kernels.h"

#include "tracing/kernels/kernels.h"

namespace rondo {

const std::vector<OwnKernel>& own_kernels() {
  static const std::vector<OwnKernel> all = [] {
    std::vector<OwnKernel> kernels;
    for (const auto& family : {matrix_product_kernels(),
                               product_added_kernels(),
                               narrow_product_kernels(),
                               elementwise_kernels(),
                               column_sum_kernels(),
                               softmax_rows_kernels(),
                               softmax_kernels(),
                               narrow_softmax_kernels(),
                               nll_loss_kernels(),
                               cross_entropy_backward_kernels(),
                               max_pool_kernels(),
                               batch_norm_kernels(),
                               batch_norm_backward_kernels(),
                               batch_norm_blocks_kernels(),
                               batch_norm_relu_pool_kernels(),
                               batch_norm_relu_pool_blocks_kernels(),
                               batch_norm_relu_pool_backward_kernels(),
                               batch_norm_relu_pool_backward_blocks_kernels(),
                               layer_norm_kernels(),
                               layer_norm_backward_kernels(),
                               convolution_kernels(),
                               masked_fill_kernels(),
                               bernoulli_kernels(),
                               embedding_kernels(),
                               slice_backward_kernels(),
                               norm_kernels(),
                               single_number_kernels(),
                               copy_kernels(),
                               gradients_of_parts_kernels(),
                               transcendental_kernels(),
                               gelu_kernels(),
                               lstm_kernels()}) {
      kernels.insert(kernels.end(), family.begin(), family.end());
    }
    return kernels;
  }();
  return all;
}

}  // namespace rondo
