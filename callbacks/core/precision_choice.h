#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <functional>
#include <string>

#include "callbacks/core/precision_options.h"

namespace rondo {

/// What a run computes in.
struct PrecisionChoice {
  std::string dtype;         ///< as in the options
  bool is_emulated = false;  ///< float16 is rounded to after each operator
  std::string note;          ///< for a warning; "" when it is what was asked for
};

/// Whether a device multiplies matrices of a number format.
using CanCompute = std::function<bool(at::ScalarType)>;

/// By trial. float16 counts as unknown to CPUs, where LibTorch lacks or imitates it.
bool can_compute(c10::Device device, at::ScalarType dtype);

/// \throws NotSupportedError  when the format is unknown to the device and `on_unsupported` is
///                            "error"
PrecisionChoice choose_precision(const PrecisionOptions& options,
                                 c10::Device device,
                                 const CanCompute& can);

}  // namespace rondo
