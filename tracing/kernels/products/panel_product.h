#pragma once

#include <cstdint>
#include <vector>

#include "tracing/kernels/products/gemm_shape.h"

namespace rondo {

/// Numbers of a row that are packed at a time: 96 KiB a panel.
inline constexpr int kDeepestPanel = 512;

/// Whether `multiply_panels` can compute such a product: `beta` is 0 or 1, no block is longer than
/// `kDeepestPanel`, and the machine has AVX-512.
bool can_multiply_panels(const GemmShape& shape, const std::vector<int>& blocks);

/// c = op(a) · op(b) + beta · c, up to 48 rows of the result at a time. Where the rows of op(a) lie
/// side by side in memory, it is read where it lies, otherwise its rows are packed for all of b.
/// That suits the products of a training step, whose batches are too small to pay for the packing
/// of both matrices, as libraries do it; large ones are better off with a library.
/// An element is one chain of fused multiply-adds in the order of k for each of the blocks, the
/// sums of which are added one after another, whatever the number of threads.
/// \param summation  with blocks such that `can_multiply_panels`
/// Source: Goto and van de Geijn 2008, Anatomy of High-Performance Matrix Multiplication, for the
/// panels and tiles.
void multiply_panels(
    const GemmShape& shape, const Summation& summation, const float* a, const float* b, float* c);

/// Part of k.
struct InnerRange {
  int begin;
  int end;
};

/// The same over a part of k. The blocks stay those of the whole k, each cut to that part; those
/// outside of it are left out.
/// \param inner  not empty
void multiply_panels(const GemmShape& shape,
                     const Summation& summation,
                     const InnerRange& inner,
                     const float* a,
                     const float* b,
                     float* c);

/// A matrix of m × k, packed once for many products with few columns each, such as those from one
/// step of a sequence to the next: packing it takes as long as such a product. The bits are those
/// of `multiply_panels` with sums that are stored as they are. Runs on one thread.
class PackedPanels {
 public:
  /// \param blocks  such that `can_multiply_panels`; they add up to k
  PackedPanels(int m, std::vector<int> blocks);

  /// From a matrix that lies column by column, or row by row if it is `transposed`; columns, or
  /// rows, are `leading` numbers apart.
  void pack(const float* a, int leading, bool transposed);

  /// c = a · b, added to c if it `adds`; b and c lie column by column.
  void multiply(const float* b, int ldb, int columns, float* c, int ldc, bool adds) const;

  int64_t bytes() const { return static_cast<int64_t>(packed_.size() * sizeof(Piece)); }

 private:
  /// Of a column: the rows of one panel.
  struct alignas(64) Piece {
    float numbers[48];
  };

  int m_;
  std::vector<int> blocks_;
  std::vector<Piece> packed_;  // panel by panel of the first block, then of the next one
};

}  // namespace rondo
