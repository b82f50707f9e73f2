#include "data/internal/padding.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/ignored_label.h"
#include "data/internal/samples.h"

namespace rondo::detail {

namespace {

const at::Tensor& tensor_to_pad(const Sample& sample, int64_t number, const std::string& name) {
  const at::Tensor* const tensor = sample.find(name);
  if (tensor == nullptr || !tensor->defined() || tensor->dim() == 0) {
    throw DataError(fmt::format("pad names \"{}\", {} in sample {}",
                                name,
                                tensor == nullptr ? "which is not" : "which has no length",
                                number));
  }
  return *tensor;
}

int64_t length_for(const std::vector<Sample>& samples,
                   const std::vector<int64_t>& numbers,
                   const Padding& padding) {
  size_t place = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    for (const std::string& name : padding.tensors) {
      const int64_t length = length_of(samples[i], numbers[i], name);
      place = std::max(place, place_of(length, numbers[i], name, padding));
    }
  }
  return padding.lengths[place];
}

/// Without LibTorch's threads, of which a loader's thread would start a pool of its own.
at::Tensor padded(const at::Tensor& given, int64_t length, int64_t number) {
  const at::Tensor tensor = given.to(at::kCPU).contiguous();
  std::vector<int64_t> shape = tensor.sizes().vec();
  shape[0] = length;
  at::Tensor longer = at::empty(shape, tensor.scalar_type());
  const at::Tensor element = at::full({1}, number, tensor.scalar_type());
  auto* out = static_cast<char*>(longer.data_ptr());
  if (tensor.nbytes() > 0) {
    std::memcpy(out, tensor.data_ptr(), tensor.nbytes());
  }
  for (size_t at = tensor.nbytes(); at < longer.nbytes(); at += element.nbytes()) {
    std::memcpy(out + at, element.data_ptr(), element.nbytes());
  }
  return longer;
}

/// The number that the tensor is padded with.
int64_t filling(const at::Tensor& tensor, const std::string& name, const Padding& padding) {
  const bool is_label =
      std::find(padding.labels.begin(), padding.labels.end(), name) != padding.labels.end();
  if (is_label && (tensor.scalar_type() == at::kByte || tensor.scalar_type() == at::kBool)) {
    throw DataError(fmt::format("\"{}\" is {} and cannot be padded with {}: give it a signed type",
                                name,
                                toString(tensor.scalar_type()),
                                kIgnoredLabel));
  }
  return is_label ? kIgnoredLabel : 0;
}

}  // namespace

int64_t length_of(const Sample& sample, int64_t number, const std::string& name) {
  return tensor_to_pad(sample, number, name).size(0);
}

size_t place_of(int64_t length, int64_t number, const std::string& name, const Padding& padding) {
  if (length > padding.lengths.back()) {
    throw DataError(
        fmt::format("\"{}\" of sample {} has length {}, the longest of pad_to is {}: add a "
                    "longer one, or cut the sample",
                    name,
                    number,
                    length,
                    padding.lengths.back()));
  }
  const auto found = std::lower_bound(padding.lengths.begin(), padding.lengths.end(), length);
  return static_cast<size_t>(found - padding.lengths.begin());
}

Batch stack_padded(std::vector<Sample> samples,
                   const std::vector<int64_t>& numbers,
                   const Padding& padding) {
  const int64_t length = length_for(samples, numbers, padding);
  for (Sample& sample : samples) {
    for (const std::string& name : padding.tensors) {
      const at::Tensor tensor = sample[name];
      if (tensor.size(0) < length) {
        sample.set(name, padded(tensor, length, filling(tensor, name, padding)));
      }
    }
  }
  return stack_samples(samples, numbers);
}

}  // namespace rondo::detail
