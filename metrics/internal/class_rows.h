#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

namespace rondo::detail {

/// Logits and labels of a batch as a metric of classes counts them.
struct ClassRows {
  at::Tensor logits;  ///< [rows, classes], or [rows, 1] where one logit stands for two classes
  at::Tensor labels;  ///< int64 [rows]
  at::Tensor counts;  ///< bool [rows]: false where the label is the ignored one
};

/// \param metric        its name, for messages
/// \param logits        [..., classes]
/// \param label         integers [...], of any width
/// \param ignore_index  a label that does not count
/// \throws ShapeError  when there is not one label for each row of logits
ClassRows class_rows(std::string_view metric,
                     const at::Tensor& logits,
                     const at::Tensor& label,
                     int64_t ignore_index);

/// The same for a metric that has to know the number of classes. Of two classes there may be one
/// logit a label, as binary cross entropy has it: above 0 means class 1.
/// \throws ShapeError  when there are others than `classes` logits a label
ClassRows class_rows(std::string_view metric,
                     const at::Tensor& logits,
                     const at::Tensor& label,
                     int64_t ignore_index,
                     int64_t classes);

}  // namespace rondo::detail
