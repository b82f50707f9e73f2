#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rondo {

/// Tells which rows of a matrix have the same bytes, as those of an embedding of few tokens. What
/// is computed row by row then needs to be computed once for each of them.
class DistinctRows {
 public:
  /// For matrices of `rows` × `columns` numbers, row after row, with `most` distinct rows or fewer.
  DistinctRows(int64_t rows, int64_t columns, int64_t most);

  /// \return false where there are more than `most`, or none of the first rows is like another
  ///         one, which is taken for a matrix without equal rows
  bool find(const float* matrix);

  /// Of each distinct row, the first row of the matrix that is like it.
  const std::vector<int64_t>& firsts() const { return firsts_; }

  /// The number, among `firsts`, of what a row of the matrix is like.
  int64_t of(int64_t row) const { return numbers_[static_cast<size_t>(row)]; }

  int64_t bytes() const;

 private:
  using Number = int32_t;

  static constexpr Number kNone = -1;

  Number* place_of(const float* matrix, int64_t row);

  int64_t columns_;
  size_t most_;
  std::vector<int64_t> firsts_;
  std::vector<uint32_t> hashes_;  // of the distinct rows
  std::vector<Number> numbers_;   // of all rows
  std::vector<Number> places_;    // by hash; a power of two of them
};

}  // namespace rondo
