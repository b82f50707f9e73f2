// Compiled with -ffp-contract=off (backends/CMakeLists.txt), like all that has to give equal bits.

#include "backends/plan/kernels/panel_product.h"

#include "backends/plan/kernels/avx512.h"

#if defined(__x86_64__)

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>

#include "backends/plan/kernels/square.h"
#include "core/parallel.h"

namespace rondo {

namespace {

constexpr int kPanel = 2 * kWide;  // rows of the result: two registers

// Columns of a tile. Eight sums of two registers each keep both multipliers busy; more gain
// nothing.
constexpr int kColumns = 8;

// Factors of one tile, which is the sum of `depth` outer products: a piece of a column of op(a)
// times a piece of a row of op(b).
struct Factors {
  const float* a;
  ptrdiff_t next_a;  // from one k to the next
  const float* b;
  ptrdiff_t next_b;
  ptrdiff_t column_of_b;  // from one column to the next
  int depth;
};

// What the sums of a block are added to.
enum class Onto { Nothing, Zero, Result };

struct Target {
  float* first;
  ptrdiff_t column;  // from one to the next
  int rows;
  Onto onto;
};

/// \tparam kRegisters  as many hold a column of the tile; all their lanes, if it is whole
template <int kRegisters, bool kIsWhole, int kCount>
RONDO_AVX512 void multiply_tile(const Factors& factors, const Target& target) {
  __mmask16 masks[kRegisters];
  // Of what the result held, and of what is added to that or to zero; branches instead would drive
  // the sums out of the registers.
  __mmask16 kept[kRegisters];
  __mmask16 added[kRegisters];
  Floats sums[kCount][kRegisters];
  RONDO_UNROLLED
  for (int r = 0; r < kRegisters; ++r) {
    masks[r] = kIsWhole ? kAll : first_lanes(target.rows - r * kWide);
    kept[r] = target.onto == Onto::Result ? masks[r] : __mmask16{0};
    added[r] = target.onto == Onto::Nothing ? __mmask16{0} : masks[r];
  }
  RONDO_UNROLLED
  for (int j = 0; j < kCount; ++j) {
    RONDO_UNROLLED
    for (int r = 0; r < kRegisters; ++r) {
      sums[j][r] = _mm512_setzero_ps();
    }
  }
  // Copies: what is stored below might be part of the arguments, for all that a compiler knows.
  const auto [first_a, next_a, first_b, next_b, column_of_b, depth] = factors;
  float* const first = target.first;
  const ptrdiff_t column = target.column;
  const float* a = first_a;
  const float* b = first_b;
  for (int k = 0; k < depth; ++k, a += next_a, b += next_b) {
    Floats left[kRegisters];
    RONDO_UNROLLED
    for (int r = 0; r < kRegisters; ++r) {
      left[r] = _mm512_maskz_loadu_ps(masks[r], a + r * kWide);
    }
    RONDO_UNROLLED
    for (int j = 0; j < kCount; ++j) {
      const Floats right = _mm512_set1_ps(b[j * column_of_b]);
      RONDO_UNROLLED
      for (int r = 0; r < kRegisters; ++r) {
        sums[j][r] = _mm512_fmadd_ps(left[r], right, sums[j][r]);
      }
    }
  }
  RONDO_UNROLLED
  for (int j = 0; j < kCount; ++j) {
    RONDO_UNROLLED
    for (int r = 0; r < kRegisters; ++r) {
      float* const to = first + j * column + r * kWide;
      const Floats before = _mm512_maskz_loadu_ps(kept[r], to);
      const Floats sum = _mm512_mask_add_ps(sums[j][r], added[r], before, sums[j][r]);
      _mm512_mask_storeu_ps(to, masks[r], sum);
    }
  }
}

using MultiplyTile = void (*)(const Factors&, const Target&);

template <int kRegisters, bool kIsWhole, int... kCounts>
constexpr std::array<MultiplyTile, kColumns> tiles_of(std::integer_sequence<int, kCounts...>) {
  return {multiply_tile<kRegisters, kIsWhole, kCounts + 1>...};
}

// For 1, 2, … columns.
template <int kRegisters, bool kIsWhole>
constexpr std::array<MultiplyTile, kColumns> kTiles =
    tiles_of<kRegisters, kIsWhole>(std::make_integer_sequence<int, kColumns>());

const std::array<MultiplyTile, kColumns>& tiles_for(int rows) {
  if (rows == kPanel) {
    return kTiles<2, true>;
  }
  return rows > kWide ? kTiles<2, false> : kTiles<1, false>;
}

// A panel of the result: all columns, in tiles of nearly equal width.
void multiply_panel(Factors factors, Target target, int columns) {
  const auto& tiles = tiles_for(target.rows);
  for (int left = (columns + kColumns - 1) / kColumns; left > 0; --left) {
    const int count = (columns + left - 1) / left;
    tiles[static_cast<size_t>(count - 1)](factors, target);
    factors.b += count * factors.column_of_b;
    target.first += count * target.column;
    columns -= count;
  }
}

// packed[k][i] = rows[i][k]
RONDO_AVX512 void pack(const float* rows, ptrdiff_t row, int count, int depth, float* packed) {
  for (int i = 0; i < count; i += kWide, rows += kWide * row) {
    for (int k = 0; k < depth; k += kWide) {
      const Square square = transposed(loaded(rows + k, row, count - i, depth - k));
      for (int j = 0; j < std::min(kWide, depth - k); ++j) {
        _mm512_store_ps(packed + ptrdiff_t{k + j} * kPanel + i, square.rows[j]);
      }
    }
  }
}

// The same of columns.
RONDO_AVX512 void pack_columns(
    const float* columns, ptrdiff_t column, int count, int depth, float* packed) {
  const __mmask16 first = first_lanes(count);
  const __mmask16 second = first_lanes(count - kWide);
  for (int k = 0; k < depth; ++k, columns += column, packed += kPanel) {
    _mm512_store_ps(packed, _mm512_maskz_loadu_ps(first, columns));
    _mm512_store_ps(packed + kWide, _mm512_maskz_loadu_ps(second, columns + kWide));
  }
}

int panels_of(int m) {
  return (m + kPanel - 1) / kPanel;
}

void multiply_rows(const GemmShape& shape,
                   const std::vector<int>& blocks,
                   const InnerRange& inner,
                   const float* a,
                   const float* b,
                   const Target& target) {
  alignas(64) float packed[kDeepestPanel * kPanel];
  const ptrdiff_t next_a = shape.transpose_a ? 1 : shape.lda;
  const ptrdiff_t next_b = shape.transpose_b ? shape.ldb : 1;
  const ptrdiff_t column_of_b = shape.transpose_b ? 1 : shape.ldb;
  Onto onto = target.onto;
  int end = 0;
  for (const int block : blocks) {
    const int k = std::max(end, inner.begin);
    end += block;
    const int depth = std::min(end, inner.end) - k;
    if (depth <= 0) {
      continue;
    }
    const float* const part_of_a = a + k * next_a;
    if (shape.transpose_a) {
      pack(part_of_a, shape.lda, target.rows, depth, packed);
    }
    const Factors factors{shape.transpose_a ? packed : part_of_a,
                          shape.transpose_a ? kPanel : next_a,
                          b + k * next_b,
                          next_b,
                          column_of_b,
                          depth};
    multiply_panel(factors, {target.first, target.column, target.rows, onto}, shape.n);
    onto = Onto::Result;
  }
}

Onto begin_onto(const GemmShape& shape, const Summation& summation) {
  if (shape.beta != 0.0F) {
    return Onto::Result;
  }
  return summation.adds_to_zero ? Onto::Zero : Onto::Nothing;
}

}  // namespace

bool can_multiply_panels(const GemmShape& shape, const std::vector<int>& blocks) {
  const bool is_deep =
      std::any_of(blocks.begin(), blocks.end(), [](int depth) { return depth > kDeepestPanel; });
  return has_avx512() && !is_deep && (shape.beta == 0.0F || shape.beta == 1.0F);
}

void multiply_panels(
    const GemmShape& shape, const Summation& summation, const float* a, const float* b, float* c) {
  multiply_panels(shape, summation, {0, shape.k}, a, b, c);
}

void multiply_panels(const GemmShape& shape,
                     const Summation& summation,
                     const InnerRange& inner,
                     const float* a,
                     const float* b,
                     float* c) {
  constexpr int64_t kMultiplicationsOfElement = 8;  // that take as long as other work on it
  const ptrdiff_t row_of_a = shape.transpose_a ? shape.lda : 1;
  const int64_t panels = panels_of(shape.m);
  const int64_t work =
      int64_t{kPanel} * shape.n * (inner.end - inner.begin) / kMultiplicationsOfElement;
  const Onto onto = begin_onto(shape, summation);
  parallel_for_each(panels, work, [&](int64_t panel) {
    const int i = static_cast<int>(panel) * kPanel;
    const Target target{c + i, shape.ldc, std::min(kPanel, shape.m - i), onto};
    multiply_rows(shape, summation.blocks, inner, a + i * row_of_a, b, target);
  });
}

PackedPanels::PackedPanels(int m, std::vector<int> blocks)
    : m_(m),
      blocks_(std::move(blocks)),
      packed_(static_cast<size_t>(panels_of(m)) *
              static_cast<size_t>(std::accumulate(blocks_.begin(), blocks_.end(), 0))) {
  static_assert(sizeof(Piece) == kPanel * sizeof(float));
}

void PackedPanels::pack(const float* a, int leading, bool transposed) {
  const ptrdiff_t row = transposed ? leading : 1;
  const ptrdiff_t column = transposed ? 1 : leading;
  Piece* to = packed_.data();
  for (const int depth : blocks_) {
    for (int i = 0; i < m_; i += kPanel, to += depth) {
      const int rows = std::min(kPanel, m_ - i);
      transposed ? rondo::pack(a + i * row, row, rows, depth, to->numbers)
                 : pack_columns(a + i * row, column, rows, depth, to->numbers);
    }
    a += depth * column;
  }
}

void PackedPanels::multiply(
    const float* b, int ldb, int columns, float* c, int ldc, bool adds) const {
  const Piece* from = packed_.data();
  Onto onto = adds ? Onto::Result : Onto::Nothing;
  for (const int depth : blocks_) {
    for (int i = 0; i < m_; i += kPanel, from += depth) {
      multiply_panel({from->numbers, kPanel, b, 1, ldb, depth},
                     {c + i, ldc, std::min(kPanel, m_ - i), onto},
                     columns);
    }
    b += depth;
    onto = Onto::Result;
  }
}

}  // namespace rondo

#else

namespace rondo {

bool can_multiply_panels(const GemmShape&, const std::vector<int>&) {
  return false;
}

void multiply_panels(const GemmShape&, const Summation&, const float*, const float*, float*) {}

void multiply_panels(
    const GemmShape&, const Summation&, const InnerRange&, const float*, const float*, float*) {}

PackedPanels::PackedPanels(int m, std::vector<int> blocks) : m_(m), blocks_(std::move(blocks)) {}

void PackedPanels::pack(const float*, int, bool) {}

void PackedPanels::multiply(const float*, int, int, float*, int, bool) const {}

}  // namespace rondo

#endif
