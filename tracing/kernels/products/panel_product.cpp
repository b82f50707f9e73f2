// Compiled with -ffp-contract=off (tracing/CMakeLists.txt), like all that has to give equal bits.

#include "tracing/kernels/products/panel_product.h"

#include "tracing/kernels/avx512.h"

#if defined(__x86_64__)

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>

#include "core/parallel.h"
#include "tracing/kernels/products/square.h"

namespace rondo {

namespace {

// Of a tile. For 24 multiplications it reads three registers of a and eight numbers of b, so that
// the second cache, where a packed panel lies, keeps up with both multipliers.
constexpr int kRegisters = 3;
constexpr int kColumns = 8;

constexpr int kPanel = kRegisters * kWide;  // rows of the result, at most

/// The rows of a product, cut into panels that differ by at most one register.
class Panels {
 public:
  /// \param threads  each of which gets as many panels
  explicit Panels(int rows, int threads = 1) : rows_(rows), registers_(pieces(rows, kWide)) {
    const int fewest = pieces(registers_, kRegisters);
    count_ = std::min(pieces(fewest, threads) * threads, registers_);
  }

  int count() const { return count_; }

  int begin(int panel) const {
    return static_cast<int>(int64_t{registers_} * panel / count_) * kWide;
  }

  int rows(int panel) const { return std::min(begin(panel + 1), rows_) - begin(panel); }

 private:
  // Of at most `size` each.
  static int pieces(int whole, int size) { return (whole + size - 1) / size; }

  int rows_;
  int registers_;
  int count_;
};

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

/// \tparam kHigh  as many registers hold a column of the tile; all their lanes, if it is whole
template <int kHigh, bool kIsWhole, int kCount>
RONDO_AVX512 void multiply_tile(const Factors& factors, const Target& target) {
  __mmask16 masks[kHigh];
  // Of what the result held, and of what is added to that or to zero; branches instead would drive
  // the sums out of the registers.
  __mmask16 kept[kHigh];
  __mmask16 added[kHigh];
  Floats sums[kCount][kHigh];
  RONDO_UNROLLED
  for (int r = 0; r < kHigh; ++r) {
    masks[r] = kIsWhole ? kAll : first_lanes(target.rows - r * kWide);
    kept[r] = target.onto == Onto::Result ? masks[r] : __mmask16{0};
    added[r] = target.onto == Onto::Nothing ? __mmask16{0} : masks[r];
  }
  RONDO_UNROLLED
  for (int j = 0; j < kCount; ++j) {
    RONDO_UNROLLED
    for (int r = 0; r < kHigh; ++r) {
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
    Floats left[kHigh];
    RONDO_UNROLLED
    for (int r = 0; r < kHigh; ++r) {
      left[r] = _mm512_maskz_loadu_ps(masks[r], a + r * kWide);
    }
    RONDO_UNROLLED
    for (int j = 0; j < kCount; ++j) {
      const Floats right = _mm512_set1_ps(b[j * column_of_b]);
      RONDO_UNROLLED
      for (int r = 0; r < kHigh; ++r) {
        sums[j][r] = _mm512_fmadd_ps(left[r], right, sums[j][r]);
      }
    }
  }
  RONDO_UNROLLED
  for (int j = 0; j < kCount; ++j) {
    RONDO_UNROLLED
    for (int r = 0; r < kHigh; ++r) {
      float* const to = first + j * column + r * kWide;
      const Floats before = _mm512_maskz_loadu_ps(kept[r], to);
      const Floats sum = _mm512_mask_add_ps(sums[j][r], added[r], before, sums[j][r]);
      _mm512_mask_storeu_ps(to, masks[r], sum);
    }
  }
}

using MultiplyTile = void (*)(const Factors&, const Target&);

template <int kHigh, bool kIsWhole, int... kCounts>
constexpr std::array<MultiplyTile, kColumns> tiles_of(std::integer_sequence<int, kCounts...>) {
  return {multiply_tile<kHigh, kIsWhole, kCounts + 1>...};
}

// For 1, 2, … columns.
template <int kHigh, bool kIsWhole>
constexpr std::array<MultiplyTile, kColumns> kTiles =
    tiles_of<kHigh, kIsWhole>(std::make_integer_sequence<int, kColumns>());

template <int kCount>
const std::array<MultiplyTile, kColumns>& tiles_of_registers(int rows) {
  return rows == kCount * kWide ? kTiles<kCount, true> : kTiles<kCount, false>;
}

const std::array<MultiplyTile, kColumns>& tiles_for(int rows) {
  if (rows > 2 * kWide) {
    return tiles_of_registers<3>(rows);
  }
  return rows > kWide ? tiles_of_registers<2>(rows) : tiles_of_registers<1>(rows);
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
  for (int k = 0; k < depth; ++k, columns += column, packed += kPanel) {
    for (int i = 0; i < count; i += kWide) {
      _mm512_store_ps(packed + i, _mm512_maskz_loadu_ps(first_lanes(count - i), columns + i));
    }
  }
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
  const int64_t work_of_row =
      int64_t{shape.n} * (inner.end - inner.begin) / kMultiplicationsOfElement;
  const Panels panels(shape.m, threads_for(shape.m * work_of_row));
  const Onto onto = begin_onto(shape, summation);
  parallel_for_each(panels.count(), kPanel * work_of_row, [&](int64_t index) {
    const auto panel = static_cast<int>(index);
    const int i = panels.begin(panel);
    const Target target{c + i, shape.ldc, panels.rows(panel), onto};
    multiply_rows(shape, summation.blocks, inner, a + i * row_of_a, b, target);
  });
}

PackedPanels::PackedPanels(int m, std::vector<int> blocks)
    : m_(m),
      blocks_(std::move(blocks)),
      packed_(static_cast<size_t>(Panels(m).count()) *
              static_cast<size_t>(std::accumulate(blocks_.begin(), blocks_.end(), 0))) {
  static_assert(sizeof(Piece) == kPanel * sizeof(float));
}

void PackedPanels::pack(const float* a, int leading, bool transposed) {
  const ptrdiff_t row = transposed ? leading : 1;
  const ptrdiff_t column = transposed ? 1 : leading;
  const Panels panels(m_);
  Piece* to = packed_.data();
  for (const int depth : blocks_) {
    for (int panel = 0; panel < panels.count(); ++panel, to += depth) {
      const float* const first = a + panels.begin(panel) * row;
      const int rows = panels.rows(panel);
      transposed ? rondo::pack(first, row, rows, depth, to->numbers)
                 : pack_columns(first, column, rows, depth, to->numbers);
    }
    a += depth * column;
  }
}

void PackedPanels::multiply(
    const float* b, int ldb, int columns, float* c, int ldc, bool adds) const {
  const Panels panels(m_);
  const Piece* from = packed_.data();
  Onto onto = adds ? Onto::Result : Onto::Nothing;
  for (const int depth : blocks_) {
    for (int panel = 0; panel < panels.count(); ++panel, from += depth) {
      multiply_panel({from->numbers, kPanel, b, 1, ldb, depth},
                     {c + panels.begin(panel), ldc, panels.rows(panel), onto},
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
