#include <fmt/format.h>

#include "core/error.h"
#include "metrics/internal/class_rows.h"

namespace rondo::detail {

ClassRows class_rows(std::string_view metric,
                     const at::Tensor& logits,
                     const at::Tensor& label,
                     int64_t ignore_index) {
  if (logits.dim() == 0 || logits.numel() != label.numel() * logits.size(-1)) {
    throw ShapeError(fmt::format("{}: {} logits do not make one row for each of {} labels",
                                 metric,
                                 logits.numel(),
                                 label.numel()));
  }
  const at::Tensor labels = label.flatten().to(at::kLong);  // the ignored one may need its width
  return {logits.reshape({-1, logits.size(-1)}), labels, labels.ne(ignore_index)};
}

ClassRows class_rows(std::string_view metric,
                     const at::Tensor& logits,
                     const at::Tensor& label,
                     int64_t ignore_index,
                     int64_t classes) {
  const bool is_one_a_label = classes == 2 && logits.numel() == label.numel();
  ClassRows rows =
      class_rows(metric, is_one_a_label ? logits.reshape({-1, 1}) : logits, label, ignore_index);
  if (!is_one_a_label && rows.logits.size(1) != classes) {
    throw ShapeError(fmt::format("{}: there are {} logits a label, and not {}; set its classes",
                                 metric,
                                 rows.logits.size(1),
                                 classes));
  }
  return rows;
}

}  // namespace rondo::detail
