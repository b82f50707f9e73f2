#include "tracing/kernels/recurrent/distinct_rows.h"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "tracing/random_floats.h"

TEST_SUITE_BEGIN("tracing/kernels/distinct_rows");

using namespace rondo;
using namespace rondo::test;

namespace {

/// Rows of a table, by number.
std::vector<float> rows_of(const std::vector<float>& table,
                           int64_t columns,
                           const std::vector<int64_t>& numbers) {
  std::vector<float> matrix;
  for (const int64_t number : numbers) {
    const auto row = table.begin() + number * columns;
    matrix.insert(matrix.end(), row, row + columns);
  }
  return matrix;
}

}  // namespace

TEST_CASE("rows are like the row of the same bytes, however long they are") {
  const std::vector<int64_t> numbers = {4, 2, 4, 4, 0, 2, 1, 3, 0, 4};
  const std::vector<int64_t> first = {0, 1, 4, 6, 7};  // of 4, 2, 0, 1 and 3
  for (const int64_t columns : {1, 2, 7, 8, 9, 31, 128}) {
    CAPTURE(columns);
    const std::vector<float> table = random_floats(static_cast<int>(5 * columns), 1);
    const std::vector<float> matrix = rows_of(table, columns, numbers);
    DistinctRows rows(static_cast<int64_t>(numbers.size()), columns, 5);
    for (int run = 0; run < 2; ++run) {
      REQUIRE(rows.find(matrix.data()));
      CHECK(rows.firsts() == first);
      for (size_t i = 0; i < numbers.size(); ++i) {
        const int64_t like =
            rows.firsts().at(static_cast<size_t>(rows.of(static_cast<int64_t>(i))));
        CHECK(numbers[static_cast<size_t>(like)] == numbers[i]);
      }
    }
  }
}

TEST_CASE("too many distinct rows are none at all") {
  const std::vector<float> table = random_floats(5 * 3, 1);
  const std::vector<float> matrix = rows_of(table, 3, {0, 1, 2, 3, 4, 0});
  CHECK(DistinctRows(6, 3, 5).find(matrix.data()));
  CHECK_FALSE(DistinctRows(6, 3, 4).find(matrix.data()));
  CHECK_FALSE(DistinctRows(1, 3, 0).find(matrix.data()));
}

TEST_CASE("where the first rows are all distinct, no later ones are looked for") {
  constexpr int64_t kRows = 400;
  std::vector<float> matrix(kRows, 1.0F);
  CHECK(DistinctRows(kRows, 1, kRows).find(matrix.data()));
  for (size_t i = 0; i < 64; ++i) {
    matrix[i] = static_cast<float>(i);
  }
  CHECK_FALSE(DistinctRows(kRows, 1, kRows).find(matrix.data()));
  matrix[63] = 0.0F;
  DistinctRows rows(kRows, 1, kRows);
  CHECK(rows.find(matrix.data()));
  CHECK(rows.firsts().size() == 63);
}

TEST_CASE("bytes are compared, not numbers") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> matrix = {0.0F, -0.0F, nan, nan};
  DistinctRows rows(4, 1, 4);
  REQUIRE(rows.find(matrix.data()));
  CHECK(rows.firsts() == std::vector<int64_t>{0, 1, 2});
  CHECK(rows.of(3) == 2);
}

TEST_SUITE_END();
