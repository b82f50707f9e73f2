#include "tracing/checks/tensor_summary.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <utility>

#include "tracing/program/kernels_only.h"

namespace rondo {

namespace {

// All ones in the exponent: NaN or infinite.
template <class Bits>
int64_t count_in(const void* data, int64_t count, Bits exponent) {
  const auto* bytes = static_cast<const char*>(data);
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, bytes + i * static_cast<int64_t>(sizeof bits), sizeof bits);
    found += (bits & exponent) == exponent ? 1 : 0;
  }
  return found;
}

int64_t count_of(const at::Tensor& mask) {
  return mask.sum().item<int64_t>();
}

}  // namespace

TensorSummary summary_of(std::string name, const at::Tensor& tensor) {
  TensorSummary summary;
  summary.name = std::move(name);
  if (!tensor.defined()) {
    summary.type = "undefined";
    return summary;
  }
  summary.type =
      fmt::format("{}[{}]", at::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "));
  summary.count = tensor.numel();
  if (tensor.is_complex() || tensor.is_quantized()) {
    return summary;
  }
  const KernelsOnly scope;
  const at::Tensor values = tensor.detach().to(at::kCPU, at::kDouble);
  summary.nans = count_of(values.isnan());
  summary.infs = count_of(values.isinf());
  const at::Tensor finite = summary.is_finite() ? values : values.masked_select(values.isfinite());
  if (finite.numel() > 0) {
    summary.range = ValueRange{finite.min().item<double>(), finite.max().item<double>()};
  }
  return summary;
}

std::string to_text(const TensorSummary& summary) {
  std::string text = fmt::format("{}: {}", summary.name, summary.type);
  if (summary.range) {
    text += fmt::format(", min {:.6g}, max {:.6g}", summary.range->min, summary.range->max);
  }
  return text + fmt::format(", {} NaN, {} inf", summary.nans, summary.infs);
}

int64_t count_non_finite(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_floating_point()) {
    return 0;
  }
  const bool is_flat = tensor.is_cpu() && tensor.is_contiguous();
  if (is_flat && tensor.scalar_type() == at::kFloat) {
    return count_in<uint32_t>(tensor.data_ptr(), tensor.numel(), 0x7f800000u);
  }
  if (is_flat && tensor.scalar_type() == at::kDouble) {
    return count_in<uint64_t>(tensor.data_ptr(), tensor.numel(), 0x7ff0000000000000u);
  }
  const KernelsOnly scope;
  return tensor.numel() - count_of(tensor.detach().isfinite());
}

}  // namespace rondo
