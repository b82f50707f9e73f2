#pragma once

#include <string>

#include "core/error.h"
#include "core/tensor_map.h"

namespace torch::nn {
class Module;
}

namespace rondo {

/// A model's forward, or its loss, threw. Says on what; nests its cause.
struct ForwardError : Error {
  using Error::Error;
};

/// Dtypes and shapes, for messages: `"x" Float[10, 4], "label" Long[10]`.
std::string to_text(const TensorMap& tensors);

/// Within a handler: the exception becomes the cause of a ForwardError that names model and input
/// and, where its text tells that by a shape, the module. CaptureError, NonFiniteLossError and
/// UsageError, which say what to do themselves, come out as they are.
/// \param model  its name, such as "Mlp"
/// \capture safe: no tensor is read
[[noreturn]] void throw_forward_error(const std::string& model,
                                      const torch::nn::Module& module,
                                      const TensorMap& input);

}  // namespace rondo
