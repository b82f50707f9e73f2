// An operator of a user's own that a traced step knows by its name: with an out variant, so that
// its results lie where the plan wants them, and with a backward that is such an operator as well.

#include "squared_relu.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/autograd.h>
#include <torch/library.h>

namespace {

at::Tensor& forward_out(const at::Tensor& x, at::Tensor& out) {
  at::clamp_min_out(out, x, 0);
  return out.mul_(out);
}

at::Tensor forward(const at::Tensor& x) {
  at::Tensor out = at::empty_like(x);
  return forward_out(x, out);
}

at::Tensor& backward_out(const at::Tensor& dy, const at::Tensor& x, at::Tensor& out) {
  at::clamp_min_out(out, x, 0);
  return out.mul_(2).mul_(dy);
}

at::Tensor backward(const at::Tensor& dy, const at::Tensor& x) {
  at::Tensor out = at::empty_like(x);
  return backward_out(dy, x, out);
}

}  // namespace

TORCH_LIBRARY(example, library) {
  library.def("squared_relu(Tensor x) -> Tensor");
  library.def("squared_relu.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)");
  library.def("squared_relu_backward(Tensor dy, Tensor x) -> Tensor");
  library.def("squared_relu_backward.out(Tensor dy, Tensor x, *, Tensor(a!) out) -> Tensor(a!)");
}

TORCH_LIBRARY_IMPL(example, CPU, library) {
  library.impl("squared_relu", &forward);
  library.impl("squared_relu.out", &forward_out);
  library.impl("squared_relu_backward", &backward);
  library.impl("squared_relu_backward.out", &backward_out);
}

namespace {

template <class Operator>
auto find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Operator>();
}

struct SquaredRelu : torch::autograd::Function<SquaredRelu> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    static const auto op = find<at::Tensor(const at::Tensor&)>("example::squared_relu");
    context->save_for_backward({x});
    return op.call(x);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& dy) {
    static const auto op =
        find<at::Tensor(const at::Tensor&, const at::Tensor&)>("example::squared_relu_backward");
    return {op.call(dy[0], context->get_saved_variables()[0])};
  }
};

}  // namespace

at::Tensor squared_relu(const at::Tensor& x) {
  return SquaredRelu::apply(x);
}
