// In place of the other files of this folder where rondo is built without oneDNN.

#include <stdexcept>

#include "tracing/onednn/activation.h"
#include "tracing/onednn/convolution.h"
#include "tracing/onednn/product.h"

namespace rondo {

namespace {

[[noreturn]] void refuse() {
  throw std::logic_error("rondo was built without oneDNN");
}

}  // namespace

bool has_onednn() {
  return false;
}

int64_t channel_block() {
  return 0;
}

std::unique_ptr<OneDnnCall> prepare_convolution(const ConvolutionShape&, ImageLayout, ImageLayout) {
  refuse();
}

std::unique_ptr<OneDnnCall> prepare_gradient_of_input(const ConvolutionShape&,
                                                      ImageLayout,
                                                      ImageLayout) {
  refuse();
}

std::unique_ptr<OneDnnCall> prepare_gradient_of_weight(const ConvolutionShape&,
                                                       ImageLayout,
                                                       ImageLayout) {
  refuse();
}

std::unique_ptr<OneDnnCall> prepare_product(const ProductShape&, bool) {
  refuse();
}

std::unique_ptr<OneDnnCall> prepare_sigmoid(int64_t) {
  refuse();
}

std::unique_ptr<OneDnnCall> prepare_tanh(int64_t) {
  refuse();
}

}  // namespace rondo
