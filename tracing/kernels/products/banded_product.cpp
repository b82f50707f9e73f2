#include "tracing/kernels/products/banded_product.h"

#include "tracing/kernels/avx512.h"

#if defined(__x86_64__)

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/parallel.h"
#include "tracing/kernels/products/panel_product.h"
#include "tracing/kernels/products/square.h"

namespace rondo {

namespace {

constexpr int kSide = 32;          // of a block, at least: as many rows as a panel has
constexpr int kLeast = 3 * kSide;  // of both sides of a band; less leaves out too little
constexpr int kMostBlocks = 128;

/// Lines of numbers side by side, each `next` numbers behind the one before.
struct Lines {
  const float* first;
  ptrdiff_t next;
  int count;
  int length;
};

/// A factor whose rows, of k numbers each, become rows or columns of the result.
struct Factor {
  Lines lines;
  bool lines_are_rows;  ///< else they are columns: one for each k

  int rows() const { return lines_are_rows ? lines.count : lines.length; }

  int k() const { return lines_are_rows ? lines.length : lines.count; }

  ptrdiff_t next_row() const { return lines_are_rows ? lines.next : 1; }
};

Factor first_factor(const GemmShape& shape, const float* a) {
  return shape.transpose_a ? Factor{{a, shape.lda, shape.m, shape.k}, true}
                           : Factor{{a, shape.lda, shape.k, shape.m}, false};
}

Factor second_factor(const GemmShape& shape, const float* b) {
  return shape.transpose_b ? Factor{{b, shape.ldb, shape.k, shape.n}, false}
                           : Factor{{b, shape.ldb, shape.n, shape.k}, true};
}

/// Whether any of a line's numbers is not zero.
RONDO_AVX512 inline bool has_numbers(const float* line, int count) {
  const __m512i all_but_sign = _mm512_set1_epi32(0x7FFFFFFF);
  unsigned found = 0;
  for (int i = 0; i < count; i += kWide) {
    const __m512i bits = _mm512_maskz_loadu_epi32(first_lanes(count - i), line + i);
    found |= _mm512_test_epi32_mask(bits, all_but_sign);
  }
  return found != 0;
}

/// Which k some of the rows need: all others are zero in all of them. Each line is read only where
/// those before it had nothing.
RONDO_AVX512 InnerRange needed_along(const Lines& lines) {
  InnerRange needed{lines.length, 0};
  const float* line = lines.first;
  for (int i = 0; i < lines.count; ++i, line += lines.next) {
    int begin = 0;
    while (begin < needed.begin &&
           !has_numbers(line + begin, std::min(kWide, lines.length - begin))) {
      begin += kWide;
    }
    needed.begin = std::min(needed.begin, begin);
    int end = lines.length;
    while (end > needed.end &&
           !has_numbers(line + std::max(end - kWide, 0), std::min(kWide, end))) {
      end -= kWide;
    }
    needed.end = std::max(needed.end, end);
  }
  return needed;
}

/// The same where each line is of one k.
RONDO_AVX512 InnerRange needed_across(const Lines& lines) {
  InnerRange needed{0, lines.count};
  while (needed.begin < lines.count &&
         !has_numbers(lines.first + needed.begin * lines.next, lines.length)) {
    ++needed.begin;
  }
  while (needed.end > needed.begin &&
         !has_numbers(lines.first + (needed.end - 1) * lines.next, lines.length)) {
    --needed.end;
  }
  return needed;
}

InnerRange needed_by(const Factor& factor, int first_row, int rows) {
  Lines lines = factor.lines;
  lines.first += first_row * factor.next_row();
  (factor.lines_are_rows ? lines.count : lines.length) = rows;
  return factor.lines_are_rows ? needed_along(lines) : needed_across(lines);
}

/// What each block of a factor's rows needs.
class Band {
 public:
  explicit Band(const Factor& factor)
      : rows_(factor.rows()),
        side_((rows_ + kMostBlocks * kSide - 1) / (kMostBlocks * kSide) * kSide),
        count_((rows_ + side_ - 1) / side_) {
    const auto look_at = [&](int block) {
      InnerRange& needed = needed_[static_cast<size_t>(block)];
      needed = needed_by(factor, row_of(block), rows_of(block));
      // A block of nothing but zeros is multiplied by one of them.
      needed.begin = std::min(needed.begin, factor.k() - 1);
      needed.end = std::max(needed.end, needed.begin + 1);
      return needed.end - needed.begin;
    };
    int64_t sum = int64_t{look_at(0)} * rows_of(0);
    if (sum == int64_t{factor.k()} * rows_of(0) && look_at(count_ - 1) == factor.k()) {
      return;  // a band leaves out something at one of its ends
    }
    for (int block = 1; block < count_; ++block) {
      sum += int64_t{look_at(block)} * rows_of(block);
    }
    saves_ = 4 * sum <= 3 * int64_t{factor.k()} * rows_;
  }

  /// Enough for blocks to be faster than the whole.
  bool saves() const { return saves_; }

  int count() const { return count_; }

  int row_of(int block) const { return block * side_; }

  int rows_of(int block) const { return std::min(side_, rows_ - row_of(block)); }

  const InnerRange& needed(int block) const { return needed_[static_cast<size_t>(block)]; }

 private:
  int rows_;
  int side_;
  int count_;
  bool saves_ = false;
  std::array<InnerRange, kMostBlocks> needed_;
};

// Classes of numbers, as VFPCLASSPS has them.
constexpr int kNotFinite = 0x01 | 0x08 | 0x10 | 0x80;  // NaN, infinity
constexpr int kNegativeZero = 0x04;

template <int kClasses>
RONDO_AVX512 bool has(const Lines& lines) {
  const float* line = lines.first;
  for (int j = 0; j < lines.count; ++j, line += lines.next) {
    unsigned found = 0;
    for (int i = 0; i < lines.length; i += kWide) {
      const __mmask16 mask = first_lanes(lines.length - i);
      const Floats numbers = _mm512_maskz_loadu_ps(mask, line + i);
      found |= _mm512_fpclass_ps_mask(numbers, kClasses);
    }
    if (found != 0) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::optional<BandedProduct> BandedProduct::like_exact(const GemmShape& shape) {
  const bool is_large = shape.k >= kLeast && std::max(shape.m, shape.n) >= kLeast;
  if (!is_large || shape.beta != 0.0F) {
    return std::nullopt;
  }
  auto summation = panels_like_exact(shape);
  return summation ? std::optional(BandedProduct(shape, *std::move(summation))) : std::nullopt;
}

bool BandedProduct::run(const float* a, const float* b, float* c) const {
  const Factor first = first_factor(shape_, a);
  const Factor second = second_factor(shape_, b);
  const auto run_band = [&](const Factor& factor, const Factor& other, const auto& multiply) {
    if (factor.rows() < kLeast) {
      return false;
    }
    const Band band(factor);
    if (!band.saves() || has<kNotFinite>(other.lines)) {
      return false;
    }
    parallel_for(band.count(), 1, [&](int64_t begin, int64_t end) {
      for (int block = static_cast<int>(begin); block < end; ++block) {
        multiply(band.row_of(block), band.rows_of(block), band.needed(block));
      }
    });
    return !has<kNegativeZero>({c, shape_.ldc, shape_.n, shape_.m});
  };
  const auto of_first = [&](int row, int rows, const InnerRange& inner) {
    GemmShape part = shape_;
    part.m = rows;
    multiply_panels(part, summation_, inner, a + row * first.next_row(), b, c + row);
  };
  const auto of_second = [&](int row, int rows, const InnerRange& inner) {
    GemmShape part = shape_;
    part.n = rows;
    multiply_panels(part,
                    summation_,
                    inner,
                    a,
                    b + row * second.next_row(),
                    c + static_cast<ptrdiff_t>(row) * shape_.ldc);
  };
  return run_band(first, second, of_first) || run_band(second, first, of_second);
}

}  // namespace rondo

#else

namespace rondo {

std::optional<BandedProduct> BandedProduct::like_exact(const GemmShape&) {
  return std::nullopt;
}

bool BandedProduct::run(const float*, const float*, float*) const {
  return false;
}

}  // namespace rondo

#endif
