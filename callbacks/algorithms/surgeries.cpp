#include "callbacks/algorithms/surgeries.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/var_mean.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "callbacks/algorithms/register.h"
#include "core/registry.h"
#include "core/require.h"
#include "core/torch_compat.h"
#include "trainer/trainer.h"

namespace rondo {

namespace nn = torch::nn;

namespace {

/// The layers of a class in a model, in its order.
template <class Layer>
std::vector<Layer*> layers_in(nn::Module& model) {
  std::vector<Layer*> found;
  for (const auto& part : model.modules(/*include_self=*/false)) {
    if (auto* const layer = part->template as<Layer>()) {
      found.push_back(layer);
    }
  }
  return found;
}

bool has_stride(const std::vector<int64_t>& stride) {
  return std::any_of(stride.begin(), stride.end(), [](int64_t step) { return step > 1; });
}

/// Each channel by itself through the binomial filter of 3 by 3.
at::Tensor blurred(const at::Tensor& images, const std::vector<int64_t>& stride) {
  const int64_t channels = images.size(1);
  const auto constant = [&](double value) { return at::full({1}, value, images.options()); };
  const at::Tensor line = at::cat({constant(0.25), constant(0.5), constant(0.25)});
  const at::Tensor filter = line.unsqueeze(1).mul(line).expand({channels, 1, 3, 3}).contiguous();
  return at::conv2d(images, filter, {}, stride, {1, 1}, {1, 1}, channels);
}

void require_positive(const char* option, int64_t value) {
  detail::require(value >= 1, option, ">= 1", value);
}

// Keeps weights that are all alike from being divided by zero.
constexpr double kTiny = 1e-10;

at::Tensor standardized(const at::Tensor& weight) {
  std::vector<int64_t> all_but_first;
  for (int64_t dim = 1; dim < weight.dim(); ++dim) {
    all_but_first.push_back(dim);
  }
  const auto [variance, mean] =
      at::var_mean(weight, all_but_first, /*unbiased=*/false, /*keepdim=*/true);
  return (weight - mean) / (variance + kTiny).sqrt();
}

template <class Norm>
std::vector<nn::Module*> with_weight(nn::Module& model) {
  std::vector<nn::Module*> found;
  for (Norm* norm : layers_in<Norm>(model)) {
    if (norm->weight.defined()) {
      found.push_back(norm);
    }
  }
  return found;
}

/// A norm in the format of autocast, which it would leave.
at::Tensor in_low_precision(const LayerCall& layer, size_t weight) {
  const c10::DeviceType device = layer.input().device().type();
  if (!compat::autocast_enabled(device)) {
    return layer(layer.input());
  }
  const at::ScalarType dtype = compat::autocast_dtype(device);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const auto narrow = [&](size_t place) -> c10::IValue {
    const c10::IValue& value = layer.argument(place);
    return value.isTensor() && value.toTensor().defined() ? value.toTensor().to(dtype) : value;
  };
  return layer.with({{0, narrow(0)}, {weight, narrow(weight)}, {weight + 1, narrow(weight + 1)}});
}

/// Two matrices whose product is the best of that rank: [rows, rank] and [rank, columns].
std::pair<at::Tensor, at::Tensor> best_split(const at::Tensor& matrix, int64_t rank) {
  const at::NoGradGuard no_grad;
  const auto [u, s, v] = at::linalg_svd(matrix.detach(), /*full_matrices=*/false);
  const at::Tensor root = s.narrow(0, 0, rank).sqrt();
  return {u.narrow(1, 0, rank).mul(root).contiguous(),
          v.narrow(0, 0, rank).mul(root.unsqueeze(1)).contiguous()};
}

}  // namespace

BlurPool::BlurPool(const Options& options) : options_(options) {
  detail::require(options.replace_convs || options.replace_maxpools,
                  "BlurPool: replace_convs",
                  "true where replace_maxpools is not",
                  options.replace_convs);
  require_positive("BlurPool: min_channels", options.min_channels);
}

void BlurPool::change(nn::Module& model) {
  if (options_.replace_convs) {
    for (nn::Conv2dImpl* conv : layers_in<nn::Conv2dImpl>(model)) {
      const auto stride = conv->options.stride();
      const bool is_large = conv->options.in_channels() >= options_.min_channels;
      if (is_large && has_stride({stride->at(0), stride->at(1)})) {
        replace(*conv, [](const LayerCall& layer) {
          return layer(blurred(layer.input(), {1, 1}));
        });
      }
    }
  }
  if (options_.replace_maxpools) {
    replace("max_pool2d", [least = options_.min_channels](const LayerCall& layer) {
      std::vector<int64_t> stride = layer.argument(2).toIntVector();
      if (stride.empty()) {
        stride = layer.argument(1).toIntVector();
      }
      if (layer.input().size(1) < least || !has_stride(stride)) {
        return layer(layer.input());
      }
      const std::vector<int64_t> each(stride.size() == 1 ? 1 : 2, 1);
      return blurred(layer.with({{2, each}}), stride);
    });
  }
}

SqueezeExcite::SqueezeExcite(const Options& options) : options_(options) {
  require_positive("SqueezeExcite: latent_channels", options.latent_channels);
  require_positive("SqueezeExcite: min_channels", options.min_channels);
}

void SqueezeExcite::change(nn::Module& model) {
  for (nn::Conv2dImpl* conv : layers_in<nn::Conv2dImpl>(model)) {
    const int64_t channels = conv->options.out_channels();
    if (std::min(channels, conv->options.in_channels()) < options_.min_channels) {
      continue;
    }
    auto squeeze = conv->register_module("squeeze", nn::Linear(channels, options_.latent_channels));
    auto excite = conv->register_module("excite", nn::Linear(options_.latent_channels, channels));
    replace(*conv, [squeeze, excite](const LayerCall& layer) {
      const at::Tensor output = layer(layer.input());
      const at::Tensor mean = output.mean(at::IntArrayRef{2, 3});
      const at::Tensor weights = at::sigmoid(excite->forward(at::relu(squeeze->forward(mean))));
      return output * weights.unsqueeze(-1).unsqueeze(-1);
    });
  }
}

GhostBatchNorm::GhostBatchNorm(const Options& options) : options_(options) {
  require_positive("GhostBatchNorm: ghost_batch_size", options.ghost_batch_size);
}

void GhostBatchNorm::on_fit_start(Trainer& trainer,
                                  const DataLoader& train,
                                  const Loaders&,
                                  Loop&) {
  const int64_t batch = train.options().batch_size;
  const int64_t micro_batch = trainer.options().loop.device_train_microbatch_size.value_or(0);
  const int64_t samples = micro_batch > 0 ? std::min(micro_batch, batch) : batch;
  if (samples < options_.ghost_batch_size) {
    trainer.log().warning(fmt::format(
        "GhostBatchNorm changes nothing: a step has {} samples, fewer than ghost_batch_size = {}; "
        "set it to at most {}",
        samples,
        options_.ghost_batch_size,
        samples));
  }
}

void GhostBatchNorm::change(nn::Module& model) {
  std::vector<nn::Module*> norms = with_weight<nn::BatchNorm1dImpl>(model);
  for (const auto& more :
       {with_weight<nn::BatchNorm2dImpl>(model), with_weight<nn::BatchNorm3dImpl>(model)}) {
    norms.insert(norms.end(), more.begin(), more.end());
  }
  for (nn::Module* norm : norms) {
    replace(*norm, [size = options_.ghost_batch_size](const LayerCall& layer) {
      constexpr size_t kIsTraining = 5;
      const at::Tensor& input = layer.input();
      if (!layer.argument(kIsTraining).toBool() || input.size(0) <= size) {
        return layer(input);
      }
      std::vector<at::Tensor> parts;
      for (const at::Tensor& part : input.split(size)) {
        parts.push_back(layer(part));
      }
      return at::cat(parts);
    });
  }
}

WeightStandardization::WeightStandardization(const Options& options) : options_(options) {
  detail::require(options.n_last_layers_ignore >= 0,
                  "WeightStandardization: n_last_layers_ignore",
                  ">= 0",
                  options.n_last_layers_ignore);
}

void WeightStandardization::change(nn::Module& model) {
  std::vector<nn::Module*> convs;
  for (const auto& part : model.modules(/*include_self=*/false)) {
    if (part->as<nn::Conv1dImpl>() != nullptr || part->as<nn::Conv2dImpl>() != nullptr ||
        part->as<nn::Conv3dImpl>() != nullptr) {
      convs.push_back(part.get());
    }
  }
  const auto ignored = static_cast<size_t>(options_.n_last_layers_ignore);
  for (size_t i = 0; i + ignored < convs.size(); ++i) {
    replace(*convs[i], [](const LayerCall& layer) {
      return layer.with({{1, standardized(layer.argument(1).toTensor())}});
    });
  }
}

Factorize::Factorize(const Options& options) : options_(options) {
  require_positive("Factorize: min_channels", options.min_channels);
  require_positive("Factorize: latent_channels", options.latent_channels);
  require_positive("Factorize: min_features", options.min_features);
  require_positive("Factorize: latent_features", options.latent_features);
}

void Factorize::change(nn::Module& model) {
  if (options_.factorize_linears) {
    for (nn::LinearImpl* linear : layers_in<nn::LinearImpl>(model)) {
      const int64_t smaller =
          std::min(linear->options.in_features(), linear->options.out_features());
      if (smaller < options_.min_features || smaller <= options_.latent_features) {
        continue;
      }
      auto [outer, inner] = best_split(linear->weight, options_.latent_features);
      linear->weight.requires_grad_(false);
      const at::Tensor a = linear->register_parameter("factor_in", inner);
      const at::Tensor b = linear->register_parameter("factor_out", outer);
      replace(*linear, [a, b](const LayerCall& layer) {
        const at::Tensor weight = b.matmul(a);
        return layer.name() == "t" ? weight.t() : layer.with({{1, weight}});
      });
    }
  }
  if (options_.factorize_convs) {
    for (nn::Conv2dImpl* conv : layers_in<nn::Conv2dImpl>(model)) {
      const int64_t smaller = std::min(conv->options.in_channels(), conv->options.out_channels());
      if (smaller < options_.min_channels || smaller <= options_.latent_channels ||
          conv->options.groups() != 1) {
        continue;
      }
      auto [outer, inner] = best_split(conv->weight.flatten(1), options_.latent_channels);
      std::vector<int64_t> shape = conv->weight.sizes().vec();
      shape[0] = options_.latent_channels;
      conv->weight.requires_grad_(false);
      const at::Tensor a = conv->register_parameter("factor_in", inner.reshape(shape));
      const at::Tensor b =
          conv->register_parameter("factor_out", outer.unsqueeze(-1).unsqueeze(-1));
      replace(*conv, [a, b, bias = conv->bias](const LayerCall& layer) {
        return at::conv2d(layer.with_weight(layer.input(), a, /*has_bias=*/false), b, bias);
      });
    }
  }
}

void LowPrecisionLayerNorm::change(nn::Module& model) {
  for (nn::Module* norm : with_weight<nn::LayerNormImpl>(model)) {
    replace(*norm, [](const LayerCall& layer) { return in_low_precision(layer, 2); });
  }
}

void LowPrecisionGroupNorm::change(nn::Module& model) {
  for (nn::Module* norm : with_weight<nn::GroupNormImpl>(model)) {
    replace(*norm, [](const LayerCall& layer) { return in_low_precision(layer, 2); });
  }
}

void register_surgeries(Registry<Algorithm>& registry) {
  registry.add<BlurPool>("BlurPool", "Blurs before strides of convolutions and max pools.")
      .key("replace_convs", &BlurPool::Options::replace_convs, "blur the input of convolutions")
      .key("replace_maxpools", &BlurPool::Options::replace_maxpools, "blur what max pools give")
      .key("min_channels",
           &BlurPool::Options::min_channels,
           at_least(1),
           "channels of the smallest input that is blurred");
  registry.add<SqueezeExcite>("SqueezeExcite", "Weighs the output channels of convolutions.")
      .key("latent_channels",
           &SqueezeExcite::Options::latent_channels,
           at_least(1),
           "numbers that a weight is made of")
      .key("min_channels",
           &SqueezeExcite::Options::min_channels,
           at_least(1),
           "channels of the smallest convolution that is changed");
  registry
      .add<GhostBatchNorm>("GhostBatchNorm",
                           "Normalizes each part of a batch with its own statistics.")
      .key("ghost_batch_size",
           &GhostBatchNorm::Options::ghost_batch_size,
           at_least(1),
           "samples of a part");
  registry
      .add<WeightStandardization>("WeightStandardization",
                                  "Gives the weights of convolutions mean 0 and variance 1.")
      .key("n_last_layers_ignore",
           &WeightStandardization::Options::n_last_layers_ignore,
           at_least(0),
           "convolutions at the end that stay as they are");
  using Options = Factorize::Options;
  registry.add<Factorize>("Factorize", "Splits large layers into two with fewer parameters.")
      .key("factorize_convs", &Options::factorize_convs, "split convolutions")
      .key("factorize_linears", &Options::factorize_linears, "split linear layers")
      .key("min_channels",
           &Options::min_channels,
           at_least(1),
           "channels of the smallest convolution that is split")
      .key("latent_channels",
           &Options::latent_channels,
           at_least(1),
           "channels between its two parts")
      .key("min_features",
           &Options::min_features,
           at_least(1),
           "features of the smallest linear layer that is split")
      .key("latent_features",
           &Options::latent_features,
           at_least(1),
           "features between its two parts");
  registry.add<LowPrecisionLayerNorm>("LowPrecisionLayerNorm",
                                      "Computes layer norms in the format of the other layers.");
  registry.add<LowPrecisionGroupNorm>("LowPrecisionGroupNorm",
                                      "Computes group norms in the format of the other layers.");
}

}  // namespace rondo
