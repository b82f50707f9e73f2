#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "tracing/onednn/onednn_call.h"

namespace rondo {

/// Products of matrices of bfloat16.
struct ProductShape {
  using Steps = std::array<int64_t, 3>;  ///< elements to the next matrix, row and column

  int64_t batch;  ///< matrices; 0: one, without a dimension of its own
  int64_t rows;
  int64_t columns;
  int64_t inner;
  Steps a;  ///< [batch, rows, inner]
  Steps b;  ///< [batch, inner, columns]
  Steps y;  ///< [batch, rows, columns]
};

/// Tensors: a, b and y. It needs `has_onednn()`.
/// \param adds  whether the product is added to what y holds, and rounded once
std::unique_ptr<OneDnnCall> prepare_product(const ProductShape& shape, bool adds);

}  // namespace rondo
