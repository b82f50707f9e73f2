#include <cstring>
#include <optional>
#include <utility>

#include "core/parallel.h"
#include "tracing/kernels/kernels.h"
#include "tracing/kernels/products/banded_product.h"
#include "tracing/kernels/products/blas.h"
#include "tracing/kernels/products/gemm.h"
#include "tracing/kernels/products/product_shape.h"
#include "tracing/program/arguments.h"

namespace rondo {

namespace {

// Another order of summation, in units of the largest element: the error grows with the root of k.
constexpr int kUlps = 256;

// Chooses the library for a shape.
using Choose = Gemm (*)(const GemmShape&);

// result = a · b, or += when it holds something already.
class ProductKernel final : public Kernel {
 public:
  /// `a` and `b` as the operator has them.
  ProductKernel(const Gemm& gemm, Operand a, Operand b, Operand result)
      : gemm_(gemm), first_(b), second_(a), result_(result) {}

  void run() override { gemm_.run(first_.as<float>(), second_.as<float>(), result_.as<float>()); }

 private:
  Gemm gemm_;
  Operand first_;
  Operand second_;
  Operand result_;
};

// bias + a · b, the bias added by the product itself.
class LinearKernel final : public Kernel {
 public:
  LinearKernel(Operand bias,
               Operand result,
               int64_t rows,
               int64_t columns,
               std::unique_ptr<ProductKernel> product)
      : bias_(bias),
        result_(result),
        rows_(rows),
        columns_(columns),
        product_(std::move(product)) {}

  void run() override {
    const float* const bias = bias_.as<float>();
    float* row = result_.as<float>();
    for (int64_t i = 0; i < rows_; ++i, row += columns_) {
      std::memcpy(row, bias, static_cast<size_t>(columns_) * sizeof(float));
    }
    product_->run();
  }

 private:
  Operand bias_;
  Operand result_;
  int64_t rows_;
  int64_t columns_;
  std::unique_ptr<ProductKernel> product_;
};

std::optional<GemmShape> mm_product(const StepProgram& program, const Instruction& instruction) {
  return product_of(slot_at(program, instruction.results, 0),
                    slot_at(program, instruction.arguments, 0),
                    slot_at(program, instruction.arguments, 1));
}

bool accepts_mm(const StepProgram& program, const Instruction& instruction) {
  return blas::sgemm() != nullptr && mm_product(program, instruction);
}

// With the choice as a template argument, so that a row of the table is a plain function.
template <Choose choose>
std::unique_ptr<Kernel> make_mm(const StepProgram& program,
                                const Instruction& instruction,
                                const Operands& memory) {
  return std::make_unique<ProductKernel>(choose(*mm_product(program, instruction)),
                                         memory.operand(id_at(instruction.arguments, 0)),
                                         memory.operand(id_at(instruction.arguments, 1)),
                                         memory.operand(id_at(instruction.results, 0)));
}

// (target, a, b, adds): LibTorch adds the finished product, which is what a library does that has
// the whole of `k` in one block; the trial tells.
bool accepts_mm_to(const StepProgram& program, const Instruction& instruction) {
  return blas::sgemm() != nullptr && product_added_to(program, instruction);
}

template <Choose choose>
std::unique_ptr<Kernel> make_mm_to(const StepProgram& program,
                                   const Instruction& instruction,
                                   const Operands& memory) {
  GemmShape shape = *product_added_to(program, instruction);
  shape.beta = instruction.arguments[3].constant.toBool() ? 1.0F : 0.0F;
  return std::make_unique<ProductKernel>(choose(shape),
                                         memory.operand(id_at(instruction.arguments, 1)),
                                         memory.operand(id_at(instruction.arguments, 2)),
                                         memory.operand(id_at(instruction.arguments, 0)));
}

std::optional<GemmShape> addmm_product(const StepProgram& program, const Instruction& instruction) {
  return product_of(slot_at(program, instruction.results, 0),
                    slot_at(program, instruction.arguments, 1),
                    slot_at(program, instruction.arguments, 2));
}

bool accepts_addmm(const StepProgram& program, const Instruction& instruction) {
  const Slot* const bias = slot_at(program, instruction.arguments, 0);
  const bool is_plain =
      is_constant(instruction.arguments[3], 1.0) && is_constant(instruction.arguments[4], 1.0);
  return blas::sgemm() != nullptr && is_plain && is_plain_float(bias) && bias->sizes.size() == 1 &&
         addmm_product(program, instruction) &&
         bias->sizes[0] == slot_at(program, instruction.results, 0)->sizes[1];
}

template <Choose choose>
std::unique_ptr<Kernel> make_addmm(const StepProgram& program,
                                   const Instruction& instruction,
                                   const Operands& memory) {
  const Slot& result = *slot_at(program, instruction.results, 0);
  const Operand target = memory.operand(id_at(instruction.results, 0));
  GemmShape shape = *addmm_product(program, instruction);
  shape.beta = 1.0F;
  auto product = std::make_unique<ProductKernel>(choose(shape),
                                                 memory.operand(id_at(instruction.arguments, 1)),
                                                 memory.operand(id_at(instruction.arguments, 2)),
                                                 target);
  return std::make_unique<LinearKernel>(memory.operand(id_at(instruction.arguments, 0)),
                                        target,
                                        result.sizes[0],
                                        result.sizes[1],
                                        std::move(product));
}

// One matrix of a batch of them, as they all lie.
std::optional<Slot> matrix_of(const Slot* batch) {
  if (batch == nullptr || batch->sizes.size() != 3) {
    return std::nullopt;
  }
  Slot matrix = *batch;
  matrix.sizes.erase(matrix.sizes.begin());
  matrix.strides.erase(matrix.strides.begin());
  return matrix;
}

std::optional<GemmShape> bmm_product(const StepProgram& program, const Instruction& instruction) {
  const Slot* const result = slot_at(program, instruction.results, 0);
  const auto c = matrix_of(result);
  const auto a = matrix_of(slot_at(program, instruction.arguments, 0));
  const auto b = matrix_of(slot_at(program, instruction.arguments, 1));
  if (!c || !a || !b || !is_contiguous(*result)) {
    return std::nullopt;
  }
  return product_of(&*c, &*a, &*b);
}

// Below, LibTorch has loops of its own.
bool accepts_bmm(const StepProgram& program, const Instruction& instruction) {
  constexpr int64_t kLeast = 400;
  const auto shape = bmm_product(program, instruction);
  return blas::sgemm() != nullptr && shape && int64_t{shape->m} * shape->n * shape->k >= kLeast;
}

// A batch of products, which LibTorch too computes one by one.
class BatchedProductKernel final : public Kernel {
 public:
  struct Matrices {
    Operand first;
    int64_t stride;  // in elements, from one to the next
  };

  /// \param banded  for factors with many zeros
  BatchedProductKernel(const Gemm& gemm,
                       std::optional<BandedProduct> banded,
                       int64_t count,
                       Matrices a,
                       Matrices b,
                       Matrices result)
      : gemm_(gemm), banded_(std::move(banded)), count_(count), a_(a), b_(b), result_(result) {}

  void run() override {
    const float* const a = a_.first.as<float>();
    const float* const b = b_.first.as<float>();
    float* const result = result_.first.as<float>();
    parallel_for(count_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        multiply(b + i * b_.stride, a + i * a_.stride, result + i * result_.stride);
      }
    });
  }

 private:
  void multiply(const float* first, const float* second, float* result) const {
    if (!banded_ || !banded_->run(first, second, result)) {
      gemm_.run(first, second, result);
    }
  }

  Gemm gemm_;
  std::optional<BandedProduct> banded_;
  int64_t count_;
  Matrices a_;
  Matrices b_;
  Matrices result_;
};

template <Choose choose>
std::unique_ptr<Kernel> make_bmm(const StepProgram& program,
                                 const Instruction& instruction,
                                 const Operands& memory) {
  const auto matrices = [&](const std::vector<Argument>& among, size_t i) {
    return BatchedProductKernel::Matrices{memory.operand(id_at(among, i)),
                                          slot_at(program, among, i)->strides[0]};
  };
  const int64_t count = slot_at(program, instruction.results, 0)->sizes[0];
  GemmShape shape = *bmm_product(program, instruction);
  shape.is_part = count > 1;
  return std::make_unique<BatchedProductKernel>(choose(shape),
                                                BandedProduct::like_exact(shape),
                                                count,
                                                matrices(instruction.arguments, 0),
                                                matrices(instruction.arguments, 1),
                                                matrices(instruction.results, 0));
}

}  // namespace

std::vector<OwnKernel> matrix_product_kernels() {
  return {{"aten::mm", accepts_mm, make_mm<fast_gemm>, kUlps},
          {"rondo::mm_to_", accepts_mm_to, make_mm_to<fast_gemm>, kUlps},
          {"aten::addmm", accepts_addmm, make_addmm<fast_gemm>, kUlps},
          {"aten::bmm", accepts_bmm, make_bmm<fast_gemm>, kUlps},
          {"aten::mm", accepts_mm, make_mm<exact_gemm>},
          {"rondo::mm_to_", accepts_mm_to, make_mm_to<exact_gemm>},
          {"aten::addmm", accepts_addmm, make_addmm<exact_gemm>},
          {"aten::bmm", accepts_bmm, make_bmm<exact_gemm>}};
}

}  // namespace rondo
