#include "tracing/recording/whole_composites.h"

#include <tuple>

#include <torch/library.h>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/one_hot.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "tracing/operators/define_operator.h"
#include "tracing/recording/conjugates.h"
#include "tracing/recording/length_reads.h"

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

std::tuple<at::Tensor, at::Tensor, at::Tensor> cumulative_batch_norm(
    const at::Tensor& input,
    const c10::optional<at::Tensor>& weight,
    const c10::optional<at::Tensor>& bias,
    const c10::optional<at::Tensor>& running_mean,
    const c10::optional<at::Tensor>& running_var,
    bool training,
    const at::Tensor& batches,
    double eps) {
  const double momentum = 1.0 / batches.item<double>();
  return at::native_batch_norm(
      input, weight, bias, running_mean, running_var, training, momentum, eps);
}

}  // namespace

void define_whole_composites(torch::Library& library) {
  define_operator(
      library, {"rondo::one_hot(Tensor labels, int classes) -> Tensor"}, &one_hot_as_written);
  define_operator(
      library,
      {"rondo::cumulative_batch_norm(Tensor input, Tensor? weight, Tensor? bias, "
       "Tensor(a!)? running_mean, Tensor(b!)? running_var, bool training, Tensor batches, "
       "float eps) -> (Tensor, Tensor, Tensor)"},
      &cumulative_batch_norm);
  define_length_reads(library);
}

std::optional<size_t> take_over_batch_count(const StepProgram& program,
                                            c10::OperatorHandle& op,
                                            std::vector<Argument>& arguments) {
  constexpr size_t kMomentum = 6;
  if (op.schema().name() != "aten::native_batch_norm") {
    return std::nullopt;
  }
  size_t place = program.instructions.size();
  while (place > 0 && program.instructions[place - 1].is_allocation) {
    --place;  // LibTorch makes an empty tensor in between
  }
  if (place == 0) {
    return std::nullopt;
  }
  const Instruction& read = program.instructions[place - 1];
  if (read.op.schema().name() != "aten::_local_scalar_dense" || !read.results[0].constant.isInt() ||
      arguments[kMomentum].constant.toDouble() !=
          1.0 / static_cast<double>(read.results[0].constant.toInt())) {
    return std::nullopt;
  }
  arguments[kMomentum] = read.arguments[0];
  op = c10::Dispatcher::singleton().findSchemaOrThrow("rondo::cumulative_batch_norm", "");
  return place - 1;
}

void take_composites_over() {
  static torch::Library others(torch::Library::IMPL, "_", kWholeComposites, __FILE__, __LINE__);
  others.fallback(torch::CppFunction::makeFallthrough());
  static torch::Library composites(
      torch::Library::IMPL, "aten", kWholeComposites, __FILE__, __LINE__);
  composites.impl("one_hot", &take_over_one_hot);
  composites.impl("_conj", &conj_as_tensor);
  composites.impl("imag", &imag_as_tensor);
  take_length_reads_over(composites);
}

}  // namespace rondo
