#pragma once

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdint>

namespace rondo {

/// The right class of each row of a classification.
struct Labels {
  const int64_t* data;
  int64_t count;
  int64_t classes;
  int64_t ignored;

  /// The class of a row, or -1 when it is to be ignored.
  int64_t operator[](int64_t row) const {
    const int64_t label = data[row];
    if (label == ignored) {
      return -1;
    }
    TORCH_CHECK_INDEX(label >= 0 && label < classes,
                      "Target ",
                      label,
                      " is out of bounds: expected 0 to ",
                      classes - 1,
                      " in row ",
                      row);
    return label;
  }

  /// Writes `value` at the class of each row of `to`, [count, classes], and zeros elsewhere.
  void write_at_class(float value, float* to) const {
    std::fill_n(to, count * classes, 0.0F);
    for (int64_t row = 0; row < count; ++row) {
      const int64_t label = (*this)[row];
      if (label >= 0) {
        to[row * classes + label] = value;
      }
    }
  }
};

}  // namespace rondo
