#include "models/blocks/u_net_body.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max_pool1d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/max_pool3d.h>
#include <ATen/ops/silu.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <cmath>

#include "core/error.h"
#include "models/blocks/batch_norm.h"

namespace rondo::detail {

namespace {

constexpr int64_t kGroup = 8;  // channels that a group norm takes together

std::vector<int64_t> each_dim(int64_t dims, int64_t value) {
  return std::vector<int64_t>(static_cast<size_t>(dims), value);
}

at::Tensor halved(const at::Tensor& x, int64_t dims) {
  if (dims == 1) {
    return at::max_pool1d(x, 2);
  }
  return dims == 2 ? at::max_pool2d(x, 2) : at::max_pool3d(x, 2);
}

}  // namespace

Convolution::Convolution(const Options& options) : options_(options) {
  std::vector<int64_t> shape = each_dim(options.dims + 2, options.kernel);
  shape[0] = options.transposed ? options.inputs : options.outputs;
  shape[1] = options.transposed ? options.outputs : options.inputs;
  weight_ = register_parameter("weight", at::empty(shape));
  torch::nn::init::kaiming_uniform_(weight_, std::sqrt(5.0));  // as in PyTorch
  if (options.bias) {
    const double bound =
        1.0 / std::sqrt(static_cast<double>(weight_.numel()) / static_cast<double>(shape[0]));
    bias_ = register_parameter("bias", at::empty({options.outputs}).uniform_(-bound, bound));
  }
}

at::Tensor Convolution::forward(const at::Tensor& x) const {
  return at::convolution(x,
                         weight_,
                         bias_,
                         each_dim(options_.dims, options_.stride),
                         each_dim(options_.dims, options_.padding),
                         each_dim(options_.dims, 1),
                         options_.transposed,
                         each_dim(options_.dims, 0),
                         /*groups=*/1);
}

/// Two convolutions, each with norm and activation.
class UNetBody::Level final : public torch::nn::Module {
 public:
  Level(const UNetBody::Options& options, int64_t inputs, int64_t outputs) : norm_(options.norm) {
    add_half(options, inputs, outputs);
    add_half(options, outputs, outputs);
    if (options.time_width > 0) {
      time_ = register_module("time", torch::nn::Linear(options.time_width, outputs));
    }
  }

  at::Tensor forward(const at::Tensor& input, const at::Tensor& time) {
    at::Tensor x = run(halves_[0], input);
    if (time_) {
      std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
      shape[0] = x.size(0);
      shape[1] = x.size(1);
      x = x + time_(time).view(shape);
    }
    return run(halves_[1], x);
  }

 private:
  struct Half {
    std::shared_ptr<Convolution> convolution;
    torch::nn::BatchNorm1d batch{nullptr};
    torch::nn::GroupNorm group{nullptr};
  };

  void add_half(const UNetBody::Options& options, int64_t inputs, int64_t outputs) {
    const std::string index = std::to_string(halves_.size());
    Convolution::Options convolution{options.dims, inputs, outputs};
    convolution.padding = 1;
    convolution.bias = options.norm != "batch";  // which takes a bias away again
    Half half;
    half.convolution = register_module("conv" + index, std::make_shared<Convolution>(convolution));
    if (options.norm == "batch") {
      half.batch = register_module("norm" + index, torch::nn::BatchNorm1d(outputs));
    } else if (options.norm == "group") {
      half.group = register_module("norm" + index, torch::nn::GroupNorm(outputs / kGroup, outputs));
    }
    halves_.push_back(std::move(half));
  }

  at::Tensor run(Half& half, const at::Tensor& input) {
    at::Tensor x = half.convolution->forward(input);
    if (half.batch) {
      x = batch_norm(half.batch, x);
    } else if (half.group) {
      x = half.group(x);
    }
    return norm_ == "batch" ? x.relu() : at::silu(x);
  }

  std::string norm_;
  std::vector<Half> halves_;
  torch::nn::Linear time_{nullptr};
};

UNetBody::UNetBody(const Options& options) : options_(options) {
  int64_t channels = options.inputs;
  for (int64_t i = 0; i < options.depth; ++i) {
    down_.push_back(level("down" + std::to_string(i), channels, options.width << i));
    channels = options.width << i;
  }
  bottom_ = level("bottom", channels, options.width << options.depth);
  for (int64_t i = options.depth - 1; i >= 0; --i) {
    const int64_t width = options.width << i;
    Convolution::Options up{options.dims, 2 * width, width};
    up.kernel = 2;
    up.stride = 2;
    up.transposed = true;
    const std::string index = std::to_string(i);
    up_.push_back(register_module("up" + index, std::make_shared<Convolution>(up)));
    join_.push_back(level("join" + index, 2 * width, width));
  }
  Convolution::Options head{options.dims, options.width, options.outputs};
  head.kernel = 1;
  head_ = register_module("head", std::make_shared<Convolution>(head));
}

std::shared_ptr<UNetBody::Level> UNetBody::level(const std::string& name,
                                                 int64_t inputs,
                                                 int64_t outputs) {
  return register_module(name, std::make_shared<Level>(options_, inputs, outputs));
}

at::Tensor UNetBody::forward(const at::Tensor& input, const at::Tensor& time) {
  std::vector<at::Tensor> on_the_way;
  at::Tensor x = input;
  for (const auto& down : down_) {
    on_the_way.push_back(down->forward(x, time));
    x = halved(on_the_way.back(), options_.dims);
  }
  x = bottom_->forward(x, time);
  for (size_t i = 0; i < up_.size(); ++i) {
    const at::Tensor joined = at::cat({on_the_way.back(), up_[i]->forward(x)}, 1);
    on_the_way.pop_back();
    x = join_[i]->forward(joined, time);
  }
  return head_->forward(x);
}

void require_halvable(const char* model, const at::Tensor& x, const UNetBody::Options& options) {
  const int64_t unit = int64_t{1} << options.depth;
  bool fits = x.dim() == options.dims + 2 && x.size(1) == options.inputs;
  for (int64_t dim = 2; fits && dim < x.dim(); ++dim) {
    fits = x.size(dim) >= unit && x.size(dim) % unit == 0;
  }
  if (!fits) {
    throw ShapeError(
        fmt::format("{}: the input must be [B, {}] and {} sizes that are multiples of {}, 2 to the "
                    "depth; it is [{}]",
                    model,
                    options.inputs,
                    options.dims,
                    unit,
                    fmt::join(x.sizes(), ", ")));
  }
}

}  // namespace rondo::detail
