#include "tracing/onednn/product.h"

#include "tracing/onednn/internal/call.h"

namespace rondo {

namespace {

using dnnl::matmul;
using dnnl::memory;

/// A single matrix is told of as such: oneDNN may treat a batch of one in another way.
memory::desc matrices(int64_t batch, int64_t rows, int64_t columns, ProductShape::Steps steps) {
  constexpr auto kType = memory::data_type::bf16;
  if (batch == 0) {
    return {memory::dims{rows, columns}, kType, memory::dims{steps[1], steps[2]}};
  }
  return {memory::dims{batch, rows, columns}, kType, memory::dims{steps[0], steps[1], steps[2]}};
}

dnnl::primitive_attr attributes(bool adds) {
  dnnl::primitive_attr attributes = onednn::scratchpad_of_ours();
  if (adds) {
    dnnl::post_ops sum;
    sum.append_sum(1.0F);
    attributes.set_post_ops(sum);
  }
  return attributes;
}

matmul::primitive_desc describe(const memory::desc& a,
                                const memory::desc& b,
                                const memory::desc& y,
                                bool adds) {
#if DNNL_VERSION_MAJOR >= 3
  return {onednn::engine(), a, b, y, attributes(adds)};
#else
  return {matmul::desc(a, b, y), attributes(adds), onednn::engine()};
#endif
}

}  // namespace

std::unique_ptr<OneDnnCall> prepare_product(const ProductShape& shape, bool adds) {
  const memory::desc a = matrices(shape.batch, shape.rows, shape.inner, shape.a);
  const memory::desc b = matrices(shape.batch, shape.inner, shape.columns, shape.b);
  const memory::desc y = matrices(shape.batch, shape.rows, shape.columns, shape.y);
  const matmul::primitive_desc description = describe(a, b, y, adds);
  auto call = std::make_unique<onednn::Call>(
      matmul(description), description.scratchpad_desc(), onednn::Call::Scratch::Shared);
  call->read(DNNL_ARG_SRC, a, a);
  call->read(DNNL_ARG_WEIGHTS, b, b);
  call->write(DNNL_ARG_DST, y, y);
  return call;
}

}  // namespace rondo
