#include "loops/refused_index.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <functional>
#include <regex>
#include <utility>
#include <vector>

#include "core/factory.h"
#include "core/ignored_label.h"

namespace rondo {

namespace {

/// The first element of an integer tensor of the batch for which `is_meant` holds.
std::optional<RefusedIndex> first_in(const Batch& batch,
                                     const std::function<bool(int64_t, int64_t)>& is_meant) {
  for (const auto& [name, tensor] : batch.items()) {
    if (!tensor.defined() || !at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false)) {
      continue;
    }
    const at::Tensor values = tensor.to(at::kCPU, at::kLong).contiguous();
    for (int64_t i = 0; i < values.numel(); ++i) {
      const int64_t value = values.data_ptr<int64_t>()[i];
      if (is_meant(value, i)) {
        return RefusedIndex{name, i, value, ""};
      }
    }
  }
  return std::nullopt;
}

/// A value, where it stands first or, if that is known, at `position`.
std::optional<RefusedIndex> find_value(const Batch& batch,
                                       int64_t wanted,
                                       std::optional<int64_t> position) {
  if (position) {
    const auto found = first_in(
        batch, [&](int64_t value, int64_t at) { return value == wanted && at == *position; });
    if (found) {
      return found;
    }
  }
  return first_in(batch, [&](int64_t value, int64_t) { return value == wanted; });
}

/// Modules that look up rows, with the number of these.
std::vector<std::pair<std::string, int64_t>> tables_of(const torch::nn::Module& module) {
  std::vector<std::pair<std::string, int64_t>> tables;
  for (const auto& item : module.named_modules("", /*include_self=*/false)) {
    const torch::nn::Module& part = *item.value();
    const auto parameters = part.named_parameters(/*recurse=*/false);
    const at::Tensor* const weight = parameters.find("weight");
    const bool looks_up = class_name(typeid(part)).find("Embedding") != std::string::npos;
    if (looks_up && weight != nullptr && weight->dim() == 2) {
      tables.emplace_back(item.key(), weight->size(0));
    }
  }
  return tables;
}

/// An index that is in no table, else one that is not in all of them.
std::optional<RefusedIndex> find_beyond(const Batch& batch, const torch::nn::Module& module) {
  const auto tables = tables_of(module);
  if (tables.empty()) {
    return std::nullopt;
  }
  std::vector<int64_t> rows;
  std::vector<std::string> texts;
  for (const auto& [name, count] : tables) {
    rows.push_back(count);
    texts.push_back(fmt::format("embedding {} has {} rows", name, count));
  }
  const auto [least, most] = std::minmax_element(rows.begin(), rows.end());
  std::optional<RefusedIndex> found;
  for (const int64_t limit : {*most, *least}) {
    found = found ? found : first_in(batch, [&](int64_t value, int64_t) {
      return value >= limit || (value < 0 && value != kIgnoredLabel);
    });
  }
  if (found) {
    found->limit = fmt::format("{}", fmt::join(texts, ", "));
  }
  return found;
}

}  // namespace

std::optional<RefusedIndex> refused_index(const std::string& complaint,
                                          const Batch& batch,
                                          const torch::nn::Module& module) {
  static const std::regex kTarget("Target (-?[0-9]{1,18}) is out of bounds(?:.* in row ([0-9]+))?");
  static const std::regex kIndex("index (-?[0-9]{1,18}) at position ([0-9]+) is out of range");
  std::smatch match;
  if (std::regex_search(complaint, match, kTarget) || std::regex_search(complaint, match, kIndex)) {
    return find_value(batch,
                      std::stoll(match[1].str()),
                      match[2].matched ? std::optional(std::stoll(match[2].str())) : std::nullopt);
  }
  if (complaint.find("index out of range in self") != std::string::npos) {
    return find_beyond(batch, module);
  }
  return std::nullopt;
}

}  // namespace rondo
