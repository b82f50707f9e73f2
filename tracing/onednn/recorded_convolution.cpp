#include "tracing/onednn/recorded_convolution.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <vector>

#include "core/state_dict.h"
#include "tracing/program/arguments.h"
#include "tracing/program/image.h"
#include "tracing/program/kernels_only.h"

namespace rondo {

namespace {

/// Where the arguments are that a convolution and its gradient have in common.
struct Places {
  size_t x;
  size_t weight;
  size_t stride;  ///< padding, dilation, transposed, output padding and groups follow
};

// (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
constexpr Places kForward = {0, 1, 3};

// (gradient, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding,
// groups, output_mask)
constexpr Places kBackward = {1, 2, 4};

/// One number stands for both.
std::optional<ConvolutionShape::Pair> pair_of(const Argument& argument) {
  const std::vector<int64_t> values = argument.constant.toIntVector();
  constexpr int64_t kMost = int64_t{1} << 31;  // whose products do not overflow
  const bool are_small =
      std::all_of(values.begin(), values.end(), [](int64_t v) { return 0 <= v && v < kMost; });
  if (values.empty() || values.size() > 2 || !are_small) {
    return std::nullopt;
  }
  return ConvolutionShape::Pair{values.front(), values.back()};
}

bool is_image(const Slot* slot) {
  if (!is_plain_float(slot) || numel(*slot) == 0 || slot->sizes.size() < 4 ||
      slot->sizes.size() > 5) {
    return false;
  }
  const int64_t block = block_of(*slot);
  return block == 0 || block == 8 || block == 16;
}

bool fits_together(const ConvolutionShape& shape) {
  for (size_t i = 0; i < shape.image.size(); ++i) {
    const int64_t reach = shape.dilation[i] * (shape.kernel[i] - 1) + 1;
    const int64_t places = shape.image[i] + 2 * shape.padding[i] - reach;
    if (shape.dilation[i] < 1 || shape.stride[i] < 1 || shape.padding[i] < 0 || places < 0 ||
        places / shape.stride[i] + 1 != shape.out_image[i]) {
      return false;
    }
  }
  return true;
}

/// None where it is another convolution than oneDNN has, or tensors do not fit together, which a
/// file may say.
std::optional<ConvolutionShape> shape_of(const StepProgram& program,
                                         const Instruction& instruction,
                                         const Places& places,
                                         const Slot* y,
                                         bool has_bias) {
  const std::vector<Argument>& arguments = instruction.arguments;
  const Slot* const x = slot_at(program, arguments, places.x);
  const Slot* const weight = slot_at(program, arguments, places.weight);
  const auto stride = pair_of(arguments[places.stride]);
  const auto padding = pair_of(arguments[places.stride + 1]);
  const auto dilation = pair_of(arguments[places.stride + 2]);
  if (channel_block() == 0 || !is_image(x) || !is_image(y) || !is_image(weight) ||
      weight->sizes.size() != 4 || !stride || !padding || !dilation ||
      !is_constant(arguments[places.stride + 3], 0)) {
    return std::nullopt;
  }
  const ImageSizes from = image_sizes(*x);
  const ImageSizes to = image_sizes(*y);
  const int64_t groups = arguments[places.stride + 5].constant.toInt();
  const ConvolutionShape shape = {from.batch,
                                  from.channels,
                                  to.channels,
                                  groups,
                                  {from.height, from.width},
                                  {to.height, to.width},
                                  {weight->sizes[2], weight->sizes[3]},
                                  *stride,
                                  *padding,
                                  *dilation,
                                  has_bias};
  const bool has_groups = groups > 0 && from.channels % groups == 0 &&
                          weight->sizes[1] == from.channels / groups && to.channels % groups == 0;
  const bool fits = from.batch == to.batch && weight->sizes[0] == to.channels && has_groups &&
                    fits_together(shape);
  return fits ? std::optional(shape) : std::nullopt;
}

at::Tensor random_numbers(at::IntArrayRef sizes, at::Generator& generator) {
  return at::empty(sizes, at::kFloat).normal_(0.0, 1.0, generator);
}

bool agrees(const ConvolutionShape& shape) {
  const KernelsOnly scope;
  at::Generator generator = at::detail::createCPUGenerator(/*seed_val=*/1);
  const at::Tensor x =
      random_numbers({shape.batch, shape.in, shape.image[0], shape.image[1]}, generator);
  const at::Tensor weight = random_numbers(
      {shape.out, shape.in / shape.groups, shape.kernel[0], shape.kernel[1]}, generator);
  const at::Tensor bias = random_numbers({shape.out}, generator);
  const at::Tensor expected = at::convolution(x,
                                              weight,
                                              shape.has_bias ? bias : at::Tensor(),
                                              shape.stride,
                                              shape.padding,
                                              shape.dilation,
                                              /*transposed=*/false,
                                              /*output_padding=*/{0, 0},
                                              shape.groups);
  const at::Tensor got = at::empty(expected.sizes(), at::kFloat);
  try {
    prepare_convolution(shape, ImageLayout(), ImageLayout())
        ->run({x.data_ptr(), weight.data_ptr(), got.data_ptr(), bias.data_ptr()});
  } catch (const std::exception&) {
    return false;
  }
  return equal_bytes(got, expected.contiguous());
}

/// Everything that the outcome depends on.
std::vector<int64_t> key_of(const ConvolutionShape& shape) {
  std::vector<int64_t> key = {shape.batch,
                              shape.in,
                              shape.out,
                              shape.groups,
                              shape.has_bias,
                              at::get_num_threads(),
                              at::globalContext().userEnabledMkldnn()};
  for (const auto& pair :
       {shape.image, shape.kernel, shape.stride, shape.padding, shape.dilation}) {
    key.insert(key.end(), pair.begin(), pair.end());
  }
  return key;
}

}  // namespace

std::optional<ConvolutionShape> shape_of_convolution(const StepProgram& program,
                                                     const Instruction& instruction) {
  return shape_of(program,
                  instruction,
                  kForward,
                  slot_at(program, instruction.results, 0),
                  !is_none(instruction.arguments[2]));
}

std::optional<ConvolutionShape> shape_of_convolution_backward(const StepProgram& program,
                                                              const Instruction& instruction) {
  return shape_of(program,
                  instruction,
                  kBackward,
                  slot_at(program, instruction.arguments, 0),
                  !is_none(instruction.results[2]));
}

bool agrees_with_libtorch(const ConvolutionShape& shape) {
  constexpr int64_t kMostExamples = 16;  // from which on LibTorch decides by all but their number
  static std::mutex mutex;
  static std::map<std::vector<int64_t>, bool> known;
  ConvolutionShape few = shape;
  few.batch = std::min(few.batch, kMostExamples);
  const std::lock_guard lock(mutex);
  const auto found = known.find(key_of(few));
  return found != known.end() ? found->second
                              : known.emplace(key_of(few), agrees(few)).first->second;
}

}  // namespace rondo
