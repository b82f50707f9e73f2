#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace rondo::detail {

/// One allocation, and in it an uninitialised tensor for each of `values`, of the same shape and
/// dtype (and strides, where those are dense), each beginning on a cache line. Made without the
/// dispatcher: a step that is being recorded does not see it. \param values  on one device
std::vector<at::Tensor> flat_views_like(const std::vector<at::Tensor>& values);

}  // namespace rondo::detail
