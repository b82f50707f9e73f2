#include "backends/recording/whole_composites.h"

#include <torch/library.h>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_conj.h>
#include <ATen/ops/conj_physical.h>
#include <ATen/ops/one_hot.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace rondo {

namespace {

at::Tensor one_hot_as_written(const at::Tensor& labels, int64_t classes) {
  const c10::impl::ExcludeDispatchKeyGuard as_written(kWholeComposites);
  return at::one_hot(labels, classes);
}

// It compares the labels with the number of classes on the host. As one operator it does so in each
// replay. Without a number of classes the result's size follows from data.
at::Tensor take_over_one_hot(const at::Tensor& labels, int64_t classes) {
  static const auto whole = c10::Dispatcher::singleton()
                                .findSchemaOrThrow("rondo::one_hot", "")
                                .typed<at::Tensor(const at::Tensor&, int64_t)>();
  return classes < 0 ? one_hot_as_written(labels, classes) : whole.call(labels, classes);
}

// A conjugate is a view with a flag, which a slot does not have. Of the step itself it becomes a
// tensor of its own, as it does in LibTorch as soon as an operator reads it; kernels keep theirs.
at::Tensor take_over_conj(const at::Tensor& x) {
  const bool is_in_kernel =
      c10::impl::tls_local_dispatch_key_set().excluded_.has(c10::DispatchKey::Fake);
  const c10::impl::ExcludeDispatchKeyGuard as_written(kWholeComposites);
  return is_in_kernel ? at::_conj(x) : at::conj_physical(x);
}

}  // namespace

void define_whole_composites(torch::Library& library) {
  library.def("one_hot(Tensor labels, int classes) -> Tensor");
  library.impl("one_hot",
               torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, &one_hot_as_written));
}

void take_composites_over() {
  static torch::Library others(torch::Library::IMPL, "_", kWholeComposites, __FILE__, __LINE__);
  others.fallback(torch::CppFunction::makeFallthrough());
  static torch::Library composites(
      torch::Library::IMPL, "aten", kWholeComposites, __FILE__, __LINE__);
  composites.impl("one_hot", &take_over_one_hot);
  composites.impl("_conj", &take_over_conj);
}

}  // namespace rondo
