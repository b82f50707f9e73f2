#include "tracing/kernels/rows.h"

#include <doctest/doctest.h>

TEST_SUITE_BEGIN("tracing/kernels/rows");

using namespace rondo;

namespace {

Slot slot(std::vector<int64_t> sizes, std::vector<int64_t> strides) {
  Slot slot;
  slot.sizes = std::move(sizes);
  slot.strides = std::move(strides);
  return slot;
}

}  // namespace

TEST_CASE("tensors without gaps are one row, in whatever order their dimensions lie") {
  const Slot rows_first = slot({4, 6}, {6, 1});
  const Slot columns_first = slot({4, 6}, {1, 4});
  const auto rows = common_rows({&rows_first, &rows_first});
  REQUIRE(rows);
  CHECK(rows->planes == 1);
  CHECK(rows->count == 1);
  CHECK(rows->width == 24);
  CHECK(common_rows({&columns_first, &columns_first})->width == 24);
  const auto transposed = common_rows({&rows_first, &columns_first});
  REQUIRE(transposed);
  CHECK(transposed->count == 4);
  CHECK(transposed->width == 6);
  CHECK(transposed->element_steps == Rows::Steps{1, 4, 0});
}

TEST_CASE("a part of a matrix has a row for each of its rows") {
  const Slot whole = slot({4, 6}, {6, 1});
  const Slot part = slot({4, 6}, {24, 1});
  const auto rows = common_rows({&whole, &part});
  REQUIRE(rows);
  CHECK(rows->count == 4);
  CHECK(rows->width == 6);
  CHECK(rows->offset(0, 0, 3) == 18);
  CHECK(rows->offset(1, 0, 3) == 72);
}

TEST_CASE("three dimensions that do not join are planes of rows; four are too many") {
  const Slot whole = slot({2, 3, 4}, {12, 4, 1});
  const Slot part = slot({2, 3, 4}, {100, 10, 1});
  const auto rows = common_rows({&whole, &part});
  REQUIRE(rows);
  CHECK(rows->planes == 2);
  CHECK(rows->count == 3);
  CHECK(rows->width == 4);
  CHECK(rows->offset(1, 1, 2) == 120);
  const Slot deep = slot({2, 2, 3, 4}, {24, 12, 4, 1});
  const Slot holes = slot({2, 2, 3, 4}, {1000, 100, 10, 1});
  CHECK_FALSE(common_rows({&deep, &holes}));
}

TEST_CASE("a tensor is repeated over rows, or within one") {
  const Slot whole = slot({4, 6}, {6, 1});
  const Slot row = slot({6}, {1});
  const Slot column = slot({4, 1}, {1, 1});
  const auto rows = common_rows({&whole, &row});
  REQUIRE(rows);
  CHECK(rows->count == 4);
  CHECK(rows->offset(1, 0, 3) == 0);
  CHECK(common_rows({&whole, &column})->element_steps == Rows::Steps{1, 0, 0});
  CHECK_FALSE(common_rows({&row, &whole}));
}

TEST_CASE("numbers, nothing, and what is written over itself") {
  const Slot number = slot({}, {});
  const Slot nothing = slot({0, 6}, {6, 1});
  const Slot repeated = slot({4, 6}, {0, 1});
  CHECK(common_rows({&number})->width == 1);
  CHECK_FALSE(common_rows({&nothing}));
  CHECK_FALSE(common_rows({&repeated}));
}

TEST_SUITE_END();
