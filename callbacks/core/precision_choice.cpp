#include "callbacks/core/precision_choice.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <fmt/format.h>

#include "core/error.h"

namespace rondo {

namespace {

at::ScalarType format_of(const std::string& dtype) {
  if (dtype == "fp64") {
    return at::kDouble;
  }
  if (dtype == "fp16") {
    return at::kHalf;
  }
  return dtype == "fp32" ? at::kFloat : at::kBFloat16;
}

}  // namespace

bool can_compute(c10::Device device, at::ScalarType dtype) {
  if (device.is_cpu()) {
    return dtype != at::kHalf;
  }
  try {
    const at::NoGradGuard no_grad;
    const at::Tensor one = at::ones({8, 8}, at::TensorOptions().dtype(dtype).device(device));
    return at::mm(one, one).sum().item<double>() > 0.0;
  } catch (const c10::Error&) {
    return false;
  }
}

PrecisionChoice choose_precision(const PrecisionOptions& options,
                                 c10::Device device,
                                 const CanCompute& can) {
  PrecisionChoice choice{options.dtype, false, ""};
  if (can(format_of(options.dtype))) {
    return choice;
  }
  const std::string what =
      fmt::format("precision.dtype: {} does not compute in {}", device.str(), options.dtype);
  if (options.on_unsupported == "error") {
    throw NotSupportedError(
        fmt::format("{}; choose another, or set precision.on_unsupported = \"fallback\"", what));
  }
  if (options.on_unsupported == "emulate" && options.dtype == "fp16") {
    choice.is_emulated = true;
    choice.note = what + "; float32 results are rounded to float16 after each operator";
    return choice;
  }
  choice.dtype = options.dtype == "fp16" && can(at::kBFloat16) ? "bf16" : "fp32";
  choice.note = fmt::format("{}; the run uses {}", what, choice.dtype);
  return choice;
}

}  // namespace rondo
