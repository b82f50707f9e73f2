#include "tracing/onednn/convolution.h"

#include <tuple>

#include "tracing/onednn/internal/call.h"

namespace rondo {

namespace {

using dnnl::memory;
using onednn::Call;

memory::dims dims_of(const ConvolutionShape::Pair& pair) {
  return {pair[0], pair[1]};
}

/// Where the taps of a convolution lie.
struct Taps {
  memory::dims stride;
  memory::dims gaps;  ///< between two taps
  memory::dims padding;

  explicit Taps(const ConvolutionShape& shape)
      : stride(dims_of(shape.stride)),
        gaps({shape.dilation[0] - 1, shape.dilation[1] - 1}),
        padding(dims_of(shape.padding)) {}
};

memory::desc floats(const memory::dims& sizes, memory::format_tag tag) {
  return {sizes, memory::data_type::f32, tag};
}

/// The tensors of a convolution, as oneDNN is told of them.
class Tensors {
 public:
  explicit Tensors(const ConvolutionShape& shape) : shape_(shape) {}

  memory::desc x(memory::format_tag tag) const { return image(shape_.in, shape_.image, tag); }

  memory::desc x(ImageLayout layout) const { return x(tag_of(layout)); }

  memory::desc y(memory::format_tag tag) const { return image(shape_.out, shape_.out_image, tag); }

  memory::desc y(ImageLayout layout) const { return y(tag_of(layout)); }

  memory::desc any_weight() const { return weight(memory::format_tag::any); }

  memory::desc weight() const {
    return weight(shape_.groups > 1 ? memory::format_tag::goihw : memory::format_tag::oihw);
  }

  /// Of none where the shape has none.
  memory::desc bias() const {
    return shape_.has_bias ? floats({shape_.out}, memory::format_tag::a) : memory::desc();
  }

 private:
  static memory::format_tag tag_of(ImageLayout layout) {
    switch (layout.block) {
      case 8:
        return memory::format_tag::nChw8c;
      case 16:
        return memory::format_tag::nChw16c;
      default:
        return memory::format_tag::nchw;
    }
  }

  memory::desc image(int64_t channels,
                     const ConvolutionShape::Pair& size,
                     memory::format_tag tag) const {
    return floats({shape_.batch, channels, size[0], size[1]}, tag);
  }

  memory::desc weight(memory::format_tag tag) const {
    const int64_t groups = shape_.groups;
    const auto [height, width] = shape_.kernel;
    return groups > 1
               ? floats({groups, shape_.out / groups, shape_.in / groups, height, width}, tag)
               : floats({shape_.out, shape_.in, height, width}, tag);
  }

  ConvolutionShape shape_;
};

/// \param first  what a primitive takes before its taps
/// \param hint   of a gradient: the convolution whose gradient it is
template <class Primitive, class... First, class... Hint>
typename Primitive::primitive_desc describe(const Taps& taps,
                                            const std::tuple<First...>& first,
                                            const Hint&... hint) {
  return std::apply(
      [&](const auto&... tensors) -> typename Primitive::primitive_desc {
#if DNNL_VERSION_MAJOR >= 3
        return {onednn::engine(),
                tensors...,
                taps.stride,
                taps.gaps,
                taps.padding,
                taps.padding,
                hint...,
                onednn::scratchpad_of_ours()};
#else
        const typename Primitive::desc description(
            tensors..., taps.stride, taps.gaps, taps.padding, taps.padding);
        return {description, onednn::scratchpad_of_ours(), onednn::engine(), hint...};
#endif
      },
      first);
}

constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;
constexpr auto kAny = memory::format_tag::any;

dnnl::convolution_forward::primitive_desc describe_forward(const ConvolutionShape& shape) {
  const Tensors tensors(shape);
  return describe<dnnl::convolution_forward>(Taps(shape),
                                             std::tuple(dnnl::prop_kind::forward_training,
                                                        kAlgorithm,
                                                        tensors.x(kAny),
                                                        tensors.any_weight(),
                                                        tensors.bias(),
                                                        tensors.y(kAny)));
}

bool has(dnnl_cpu_isa_t set) {
  return (dnnl_get_effective_cpu_isa() & set) == set;
}

}  // namespace

int64_t channel_block() {
  if (has(dnnl_cpu_isa_avx512_core)) {
    return 16;
  }
  return has(dnnl_cpu_isa_avx2) ? 8 : 0;
}

std::unique_ptr<OneDnnCall> prepare_convolution(const ConvolutionShape& shape,
                                                ImageLayout x,
                                                ImageLayout y) {
  const Tensors tensors(shape);
  const auto description = describe_forward(shape);
  auto call =
      std::make_unique<Call>(dnnl::convolution_forward(description), description.scratchpad_desc());
  call->read(DNNL_ARG_SRC, tensors.x(x), description.src_desc());
  call->read(DNNL_ARG_WEIGHTS, tensors.weight(), description.weights_desc());
  call->write(DNNL_ARG_DST, tensors.y(y), description.dst_desc());
  if (shape.has_bias) {
    call->read(DNNL_ARG_BIAS, tensors.bias(), description.bias_desc());
  }
  return call;
}

std::unique_ptr<OneDnnCall> prepare_gradient_of_input(const ConvolutionShape& shape,
                                                      ImageLayout x,
                                                      ImageLayout y) {
  const Tensors tensors(shape);
  const auto description = describe<dnnl::convolution_backward_data>(
      Taps(shape),
      std::tuple(kAlgorithm, tensors.x(kAny), tensors.any_weight(), tensors.y(kAny)),
      describe_forward(shape));
  auto call = std::make_unique<Call>(dnnl::convolution_backward_data(description),
                                     description.scratchpad_desc());
  call->read(DNNL_ARG_DIFF_DST, tensors.y(y), description.diff_dst_desc());
  call->read(DNNL_ARG_WEIGHTS, tensors.weight(), description.weights_desc());
  call->write(DNNL_ARG_DIFF_SRC, tensors.x(x), description.diff_src_desc());
  return call;
}

std::unique_ptr<OneDnnCall> prepare_gradient_of_weight(const ConvolutionShape& shape,
                                                       ImageLayout x,
                                                       ImageLayout y) {
  const Tensors tensors(shape);
  const auto description = describe<dnnl::convolution_backward_weights>(
      Taps(shape),
      std::tuple(
          kAlgorithm, tensors.x(kAny), tensors.any_weight(), tensors.bias(), tensors.y(kAny)),
      describe_forward(shape));
  auto call = std::make_unique<Call>(dnnl::convolution_backward_weights(description),
                                     description.scratchpad_desc());
  call->read(DNNL_ARG_DIFF_DST, tensors.y(y), description.diff_dst_desc());
  call->read(DNNL_ARG_SRC, tensors.x(x), description.src_desc());
  call->write(DNNL_ARG_DIFF_WEIGHTS, tensors.weight(), description.diff_weights_desc());
  if (shape.has_bias) {
    call->write(DNNL_ARG_DIFF_BIAS, tensors.bias(), description.diff_bias_desc());
  }
  return call;
}

}  // namespace rondo
