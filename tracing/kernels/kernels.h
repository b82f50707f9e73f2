#pragma once

#include "tracing/kernels/own_kernels.h"

namespace rondo {

// The rows of the table of own kernels, a file each.

std::vector<OwnKernel> matrix_product_kernels();
std::vector<OwnKernel> product_added_kernels();
std::vector<OwnKernel> narrow_product_kernels();
std::vector<OwnKernel> elementwise_kernels();
std::vector<OwnKernel> column_sum_kernels();
std::vector<OwnKernel> softmax_rows_kernels();
std::vector<OwnKernel> softmax_kernels();
std::vector<OwnKernel> narrow_softmax_kernels();
std::vector<OwnKernel> nll_loss_kernels();
std::vector<OwnKernel> cross_entropy_backward_kernels();
std::vector<OwnKernel> max_pool_kernels();
std::vector<OwnKernel> batch_norm_kernels();
std::vector<OwnKernel> batch_norm_backward_kernels();
std::vector<OwnKernel> batch_norm_blocks_kernels();
std::vector<OwnKernel> batch_norm_relu_pool_kernels();
std::vector<OwnKernel> batch_norm_relu_pool_blocks_kernels();
std::vector<OwnKernel> batch_norm_relu_pool_backward_kernels();
std::vector<OwnKernel> batch_norm_relu_pool_backward_blocks_kernels();
std::vector<OwnKernel> layer_norm_kernels();
std::vector<OwnKernel> layer_norm_backward_kernels();
std::vector<OwnKernel> convolution_kernels();
std::vector<OwnKernel> masked_fill_kernels();
std::vector<OwnKernel> bernoulli_kernels();
std::vector<OwnKernel> embedding_kernels();
std::vector<OwnKernel> slice_backward_kernels();
std::vector<OwnKernel> norm_kernels();
std::vector<OwnKernel> single_number_kernels();
std::vector<OwnKernel> copy_kernels();
std::vector<OwnKernel> gradients_of_parts_kernels();
std::vector<OwnKernel> transcendental_kernels();
std::vector<OwnKernel> gelu_kernels();
std::vector<OwnKernel> lstm_kernels();

}  // namespace rondo
