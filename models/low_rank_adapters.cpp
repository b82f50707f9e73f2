#include "models/low_rank_adapters.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/glob.h"
#include "core/low_rank.h"
#include "core/require.h"

namespace rondo {

namespace nn = torch::nn;

namespace {

/// The member that the layer's forward reads; null for a layer that cannot be adapted.
at::Tensor* weight_member(nn::Module& layer) {
  at::Tensor* member = nullptr;
  if (auto* linear = layer.as<nn::LinearImpl>()) {
    member = &linear->weight;
  } else if (auto* conv1d = layer.as<nn::Conv1dImpl>()) {
    member = &conv1d->weight;
  } else if (auto* conv2d = layer.as<nn::Conv2dImpl>()) {
    member = &conv2d->weight;
  } else if (auto* conv3d = layer.as<nn::Conv3dImpl>()) {
    member = &conv3d->weight;
  } else if (auto* embedding = layer.as<nn::EmbeddingImpl>()) {
    member = &embedding->weight;
  } else if (auto* attention = layer.as<nn::MultiheadAttentionImpl>()) {
    member = &attention->in_proj_weight;
  }
  return member != nullptr && member->defined() ? member : nullptr;
}

void check(const LowRankOptions& options) {
  detail::require(!options.modules.empty(), "Lora: modules", "at least one glob", "none");
  detail::require(options.rank >= 1, "Lora: rank", ">= 1", options.rank);
  detail::require(options.alpha > 0.0, "Lora: alpha", "> 0", options.alpha);
  detail::require(options.dropout >= 0.0 && options.dropout < 1.0,
                  "Lora: dropout",
                  "in [0, 1)",
                  options.dropout);
}

/// \throws UsageError  when a glob matches none of the names
void require_matches(const char* option,
                     const std::vector<std::string>& globs,
                     const std::vector<std::string>& names) {
  for (const std::string& glob : globs) {
    if (std::none_of(names.begin(), names.end(), [&](const std::string& name) {
          return glob_match(glob, name);
        })) {
      throw UsageError(fmt::format(
          "Lora: {}: \"{}\" matches none of [{}]", option, glob, fmt::join(names, ", ")));
    }
  }
}

void freeze(nn::Module& module, const std::vector<std::string>& but) {
  std::vector<std::string> names;
  for (const auto& parameter : module.named_parameters()) {
    names.push_back(parameter.key());
    if (!matches_any(but, parameter.key())) {
      parameter.value().requires_grad_(false);
    }
  }
  require_matches("also_train", but, names);
}

}  // namespace

LowRankAdapters::LowRankAdapters(nn::Module& module, const LowRankOptions& options)
    : dropout_(options.dropout) {
  check(options);
  freeze(module, options.also_train);
  add(module, options);
}

void LowRankAdapters::add(nn::Module& root, const LowRankOptions& options) {
  std::vector<std::string> names;
  for (const auto& item : root.named_modules("", /*include_self=*/false)) {
    at::Tensor* const member = weight_member(*item.value());
    if (member == nullptr) {
      continue;
    }
    names.push_back(item.key());
    if (!matches_any(options.modules, item.key())) {
      continue;
    }
    const int64_t rows = member->size(0);
    const int64_t columns = member->numel() / rows;
    const at::TensorOptions like = member->options().requires_grad(false);
    // As Linear draws its weights: uniform up to 1 / sqrt(columns).
    const double bound = 1.0 / std::sqrt(static_cast<double>(columns));
    nn::Module& layer = *item.value();
    Adapter adapter{item.key(), &layer, member, *member, {}, {}, {}, {}};
    adapter.a = layer.register_parameter(
        kLowRankA, at::empty({options.rank, columns}, like).uniform_(-bound, bound));
    adapter.b = layer.register_parameter(kLowRankB, at::zeros({rows, options.rank}, like));
    adapter.scale = layer.register_buffer(
        kLowRankScale, at::full({}, options.alpha / static_cast<double>(options.rank), like));
    adapters_.push_back(std::move(adapter));
  }
  require_matches("modules", options.modules, names);
}

at::Tensor LowRankAdapters::adapted(const Adapter& adapter) const {
  at::Tensor a = adapter.a;
  if (dropout_ > 0.0 && adapter.module->is_training()) {
    a = a.mul(at::dropout(at::ones({1, a.size(1)}, a.options().requires_grad(false)),
                          dropout_,
                          /*train=*/true));
  }
  return with_low_rank(adapter.weight, a, adapter.b, adapter.scale);
}

void LowRankAdapters::install() {
  for (Adapter& adapter : adapters_) {
    *adapter.member = is_merged_ ? adapter.weight : adapted(adapter);
  }
}

void LowRankAdapters::remove() {
  for (Adapter& adapter : adapters_) {
    *adapter.member = adapter.weight;
  }
}

void LowRankAdapters::materialize() {
  const at::NoGradGuard no_grad;
  for (Adapter& adapter : adapters_) {
    *adapter.member = is_merged_
                          ? adapter.weight
                          : with_low_rank(adapter.weight, adapter.a, adapter.b, adapter.scale);
  }
}

void LowRankAdapters::merge() {
  if (is_merged_) {
    throw UsageError("the adapters are merged already: unmerge them first");
  }
  const at::NoGradGuard no_grad;
  for (Adapter& adapter : adapters_) {
    adapter.unmerged = adapter.weight.clone();
    adapter.weight.copy_(with_low_rank(adapter.unmerged, adapter.a, adapter.b, adapter.scale));
  }
  is_merged_ = true;
}

void LowRankAdapters::unmerge() {
  if (!is_merged_) {
    throw UsageError("the adapters are not merged: there is nothing to take out of the weights");
  }
  const at::NoGradGuard no_grad;
  for (Adapter& adapter : adapters_) {
    adapter.weight.copy_(adapter.unmerged);
    adapter.unmerged.reset();
  }
  is_merged_ = false;
}

std::vector<std::string> LowRankAdapters::layers() const {
  std::vector<std::string> names;
  for (const Adapter& adapter : adapters_) {
    names.push_back(adapter.layer);
  }
  return names;
}

}  // namespace rondo
