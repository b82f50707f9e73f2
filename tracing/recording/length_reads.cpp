#include "tracing/recording/length_reads.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tracing/operators/define_operator.h"
#include "tracing/recording/whole_composites.h"

namespace rondo {

namespace {

constexpr std::array<const char*, 9> kOperators = {"ctc_loss.Tensor",
                                                   "tensor_split.tensor_indices_or_sections",
                                                   "_pack_padded_sequence",
                                                   "_pack_padded_sequence_backward",
                                                   "_pad_packed_sequence",
                                                   "lstm.data",
                                                   "gru.data",
                                                   "rnn_tanh.data",
                                                   "rnn_relu.data"};

constexpr std::array<std::string_view, 5> kReadArguments = {
    "input_lengths", "target_lengths", "tensor_indices_or_sections", "lengths", "batch_sizes"};

std::vector<int64_t> integers_of(const at::Tensor& values) {
  const at::Tensor plain = values.to(at::kCPU, at::kLong).contiguous();
  const auto* const first = plain.data_ptr<int64_t>();
  return {first, first + plain.numel()};
}

void read(const at::Tensor& values) {
  static const auto integers = c10::Dispatcher::singleton()
                                   .findSchemaOrThrow("rondo::integers", "")
                                   .typed<std::vector<int64_t>(const at::Tensor&)>();
  // Of a single number an operator is asked anyway; others are refused as they were.
  if (values.defined() && values.dim() > 0 && at::isIntegralType(values.scalar_type(), false)) {
    integers.call(values);
  }
}

void read_and_run(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& declared = op.schema().arguments();
  const auto given = torch::jit::last(*stack, declared.size());
  for (size_t i = 0; i < declared.size(); ++i) {
    const bool is_read =
        std::find(kReadArguments.begin(), kReadArguments.end(), declared[i].name()) !=
        kReadArguments.end();
    if (is_read && given[i].isTensor()) {
      read(given[i].toTensor());
    }
  }
  const c10::impl::ExcludeDispatchKeyGuard as_written(kWholeComposites);
  op.callBoxed(stack);
}

}  // namespace

void define_length_reads(torch::Library& library) {
  define_operator(library, {"rondo::integers(Tensor values) -> int[]"}, &integers_of);
}

void take_length_reads_over(torch::Library& composites) {
  for (const char* const op : kOperators) {
    composites.impl(op, torch::CppFunction::makeFromBoxedFunction<&read_and_run>());
  }
}

}  // namespace rondo
