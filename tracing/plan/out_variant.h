#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>

namespace rondo {

/// The overload of an operator that computes the same into given tensors: "aten::mm" → the schema
/// of "aten::mm.out". It takes the operator's arguments, then one tensor for each of its results.
/// None when there is none, or when the one that there is only copies what the plain operator
/// returned.
/// \param device  where it runs
std::optional<c10::OperatorHandle> find_out_variant(const c10::OperatorHandle& op,
                                                    c10::DeviceType device = c10::kCPU);

}  // namespace rondo
