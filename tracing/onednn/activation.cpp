#include "tracing/onednn/activation.h"

#include "tracing/onednn/internal/call.h"

namespace rondo {

namespace {

using dnnl::eltwise_forward;
using dnnl::memory;

eltwise_forward::primitive_desc describe(dnnl::algorithm function, const memory::desc& numbers) {
  constexpr auto kKind = dnnl::prop_kind::forward_training;
  constexpr float kUnused = 0.0F;
#if DNNL_VERSION_MAJOR >= 3
  return {onednn::engine(),
          kKind,
          function,
          numbers,
          numbers,
          kUnused,
          kUnused,
          onednn::scratchpad_of_ours()};
#else
  const eltwise_forward::desc description(kKind, function, numbers, kUnused, kUnused);
  return {description, onednn::scratchpad_of_ours(), onednn::engine()};
#endif
}

std::unique_ptr<OneDnnCall> prepare(dnnl::algorithm function, int64_t count) {
  const memory::desc numbers({count}, memory::data_type::f32, memory::format_tag::a);
  const auto description = describe(function, numbers);
  auto call =
      std::make_unique<onednn::Call>(eltwise_forward(description), description.scratchpad_desc());
  call->read(DNNL_ARG_SRC, numbers, numbers);
  call->write(DNNL_ARG_DST, numbers, numbers);
  return call;
}

}  // namespace

std::unique_ptr<OneDnnCall> prepare_sigmoid(int64_t count) {
  return prepare(dnnl::algorithm::eltwise_logistic, count);
}

std::unique_ptr<OneDnnCall> prepare_tanh(int64_t count) {
  return prepare(dnnl::algorithm::eltwise_tanh, count);
}

}  // namespace rondo
