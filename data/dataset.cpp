#include "data/dataset.h"

#include <ATen/ops/stack.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>
#include <string>

#include "core/error.h"
#include "data/batch_memory.h"
#include "data/internal/padding.h"
#include "data/internal/samples.h"

namespace rondo {

namespace {

std::string shape_text(const at::Tensor& tensor) {
  return fmt::format(
      "{}[{}]", c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "));
}

/// The tensor `name` of a sample, which must be like that of the first one.
const at::Tensor& matching(const Sample& sample,
                           int64_t number,
                           const std::string& name,
                           const at::Tensor& first) {
  const at::Tensor* tensor = sample.find(name);
  if (tensor == nullptr || !tensor->defined()) {
    throw DataError(fmt::format("sample {} has no tensor \"{}\"", number, name));
  }
  if (tensor->sizes() != first.sizes() || tensor->scalar_type() != first.scalar_type()) {
    throw DataError(fmt::format("\"{}\" of sample {} is {}, that of the first sample {}",
                                name,
                                number,
                                shape_text(*tensor),
                                shape_text(first)));
  }
  return *tensor;
}

bool is_plain_memory(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.layout() == at::kStrided && tensor.is_contiguous() &&
         !tensor.is_conj() && !tensor.is_neg();
}

/// at::stack, but without LibTorch's threads: a loader thread would start a second pool of them.
at::Tensor stack_tensors(const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) {
    if (!is_plain_memory(tensor)) {
      return at::stack(tensors);
    }
  }
  std::vector<int64_t> shape = tensors.front().sizes().vec();
  shape.insert(shape.begin(), static_cast<int64_t>(tensors.size()));
  at::Tensor stacked = batch_tensor(shape, tensors.front().scalar_type());
  auto* out = static_cast<char*>(stacked.data_ptr());
  for (const at::Tensor& tensor : tensors) {
    if (tensor.nbytes() > 0) {
      std::memcpy(out, tensor.data_ptr(), tensor.nbytes());
    }
    out += tensor.nbytes();
  }
  return stacked;
}

}  // namespace

Batch detail::stack_samples(const std::vector<Sample>& samples,
                            const std::vector<int64_t>& numbers) {
  Batch batch;
  if (samples.empty()) {
    return batch;
  }
  const Sample& first = samples.front();
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].items().size() != first.items().size()) {
      throw DataError(fmt::format("sample {} has {} tensors, the first sample {}",
                                  numbers[i],
                                  samples[i].items().size(),
                                  first.items().size()));
    }
  }
  for (const auto& [name, tensor] : first.items()) {
    if (!tensor.defined()) {
      throw DataError(fmt::format("sample {} has no tensor \"{}\"", numbers[0], name));
    }
    std::vector<at::Tensor> tensors;
    tensors.reserve(samples.size());
    for (size_t i = 0; i < samples.size(); ++i) {
      tensors.push_back(matching(samples[i], numbers[i], name, tensor));
    }
    batch.set(name, stack_tensors(tensors));
  }
  return batch;
}

std::vector<Sample> detail::get_samples(const Dataset& data, const std::vector<int64_t>& indices) {
  std::vector<Sample> samples;
  samples.reserve(indices.size());
  for (const int64_t index : indices) {
    try {
      samples.push_back(data.get(index));
    } catch (...) {
      std::throw_with_nested(DataError(fmt::format("cannot get sample {}", index)));
    }
  }
  return samples;
}

Batch Dataset::get_batch(const std::vector<int64_t>& indices) const {
  return detail::stack_samples(detail::get_samples(*this, indices), indices);
}

std::vector<double> Dataset::numbers(const std::string& name) const {
  constexpr int64_t kBlock = 256;
  const int64_t all = size();
  std::vector<double> found;
  found.reserve(static_cast<size_t>(all));
  for (int64_t first = 0; first < all; first += kBlock) {
    std::vector<int64_t> indices(static_cast<size_t>(std::min(kBlock, all - first)));
    std::iota(indices.begin(), indices.end(), first);
    const Batch batch = get_batch(indices);
    const at::Tensor* const tensor = batch.find(name);
    if (tensor == nullptr || tensor->dim() != 1 || c10::isComplexType(tensor->scalar_type())) {
      throw DataError(fmt::format(
          "\"{}\" of sample {} is {}, where one number is needed",
          name,
          first,
          tensor == nullptr ? std::string("not there") : shape_text(tensor->select(0, 0))));
    }
    const at::Tensor values = tensor->to(at::kDouble).contiguous();
    const auto* const value = values.data_ptr<double>();
    found.insert(found.end(), value, value + values.numel());
  }
  return found;
}

std::vector<int64_t> Dataset::lengths(const std::vector<std::string>& names) const {
  std::vector<int64_t> found(static_cast<size_t>(size()));
  for (size_t i = 0; i < found.size(); ++i) {
    const Sample sample = get(static_cast<int64_t>(i));
    for (const std::string& name : names) {
      found[i] = std::max(found[i], detail::length_of(sample, static_cast<int64_t>(i), name));
    }
  }
  return found;
}

Batch stack(const std::vector<Sample>& samples) {
  std::vector<int64_t> numbers(samples.size());
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  return detail::stack_samples(samples, numbers);
}

}  // namespace rondo
