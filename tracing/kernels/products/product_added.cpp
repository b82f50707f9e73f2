// A product that is added to something, where the library would round otherwise: it adds each of
// its blocks of k to the sum, LibTorch the finished product. Here one tile of the product at a time
// is finished on the stack and then added, so that the product is never whole in memory.

#include <algorithm>

#include "core/parallel.h"
#include "tracing/kernels/kernels.h"
#include "tracing/kernels/products/blas.h"
#include "tracing/kernels/products/product_shape.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

constexpr int kLargestSide = 128;  // of a tile: 64 KiB, and enough work for each number packed
constexpr int kAlignment = 16;     // of sides: where a library's kernels have whole vectors

// Cuts a side of the result into equal parts, but for the last.
int side_of_tiles(int side) {
  const int tiles = (side + kLargestSide - 1) / kLargestSide;
  const int even = (side + tiles - 1) / tiles;
  return (even + kAlignment - 1) / kAlignment * kAlignment;
}

// Offsets in elements.
struct Tile {
  Gemm gemm;
  int64_t first;
  int64_t second;
  int64_t result;
  int m;
  int n;
};

Tile tile_at(const GemmShape& whole, int i, int j, int side_m, int side_n) {
  GemmShape shape = whole;
  shape.m = std::min(side_m, whole.m - i);
  shape.n = std::min(side_n, whole.n - j);
  shape.ldc = shape.m;
  shape.is_part = shape.m < whole.m || shape.n < whole.n;
  return {exact_gemm(shape),
          int64_t{i} * (whole.transpose_a ? whole.lda : 1),
          int64_t{j} * (whole.transpose_b ? 1 : whole.ldb),
          int64_t{j} * whole.ldc + i,
          shape.m,
          shape.n};
}

std::vector<Tile> tiles_of(const GemmShape& whole) {
  const int side_m = side_of_tiles(whole.m);
  const int side_n = side_of_tiles(whole.n);
  std::vector<Tile> tiles;
  for (int j = 0; j < whole.n; j += side_n) {
    for (int i = 0; i < whole.m; i += side_m) {
      tiles.push_back(tile_at(whole, i, j, side_m, side_n));
    }
  }
  return tiles;
}

// result += op(first) · op(second)
class AddedProductKernel final : public Kernel {
 public:
  AddedProductKernel(const GemmShape& shape, Operand first, Operand second, Operand result)
      : tiles_(tiles_of(shape)), ldc_(shape.ldc), first_(first), second_(second), result_(result) {}

  void run() override {
    parallel_for(static_cast<int64_t>(tiles_.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        add(tiles_[static_cast<size_t>(i)]);
      }
    });
  }

 private:
  void add(const Tile& tile) const {
    alignas(64) float product[kLargestSide * kLargestSide];
    tile.gemm.run(first_.as<float>() + tile.first, second_.as<float>() + tile.second, product);
    float* column = result_.as<float>() + tile.result;
    const float* term = product;
    for (int j = 0; j < tile.n; ++j, column += ldc_, term += tile.m) {
      for (int i = 0; i < tile.m; ++i) {
        column[i] += term[i];
      }
    }
  }

  std::vector<Tile> tiles_;
  int64_t ldc_;
  Operand first_;
  Operand second_;
  Operand result_;
};

bool accepts(const StepProgram& program, const Instruction& instruction) {
  return blas::sgemm() != nullptr && instruction.arguments[3].constant.toBool() &&
         product_added_to(program, instruction);
}

std::unique_ptr<Kernel> make(const StepProgram& program,
                             const Instruction& instruction,
                             const Operands& memory) {
  return std::make_unique<AddedProductKernel>(*product_added_to(program, instruction),
                                              memory.operand(id_at(instruction.arguments, 2)),
                                              memory.operand(id_at(instruction.arguments, 1)),
                                              memory.operand(id_at(instruction.arguments, 0)));
}

}  // namespace

std::vector<OwnKernel> product_added_kernels() {
  return {{"rondo::mm_to_", accepts, make}};
}

}  // namespace rondo
