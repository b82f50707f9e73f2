#pragma once

#include <cstdint>

#include "tracing/kernels/kernel.h"
#include "tracing/kernels/rows.h"

namespace rondo {

/// One number from one number, row by row. `loop.run(y, x, count)` does elements side by side.
template <class Loop, class Y = float, class X = Y>
class UnaryKernel final : public ElementwiseKernel {
 public:
  UnaryKernel(Operand input, Operand result, const Rows& rows, Loop loop = {})
      : input_(input), result_(result), rows_(rows), loop_(loop) {}

  void run() override {
    run_in_parts_or_rows(*this, rows_, [this](int64_t plane, int64_t row) {
      run_row(rows_.offset(0, plane, row), rows_.offset(1, plane, row), rows_.width);
    });
  }

  int64_t elements() const override { return rows_.elements(); }

  void run_part(int64_t first, int64_t count) override { run_row(first, first, count); }

 private:
  void run_row(int64_t to, int64_t from, int64_t count) const {
    loop_.run(result_.as<Y>() + to, input_.as<X>() + from, count);
  }

  Operand input_;
  Operand result_;
  Rows rows_;
  Loop loop_;
};

/// One number from two, row by row. `loop.run(y, a, b, count)` does elements side by side.
template <class Loop, class Y = float, class A = Y, class B = Y>
class BinaryKernel final : public ElementwiseKernel {
 public:
  BinaryKernel(Operand a, Operand b, Operand result, const Rows& rows, Loop loop = {})
      : a_(a), b_(b), result_(result), rows_(rows), loop_(loop) {}

  void run() override {
    run_in_parts_or_rows(*this, rows_, [this](int64_t plane, int64_t row) {
      run_row(rows_.offset(0, plane, row),
              rows_.offset(1, plane, row),
              rows_.offset(2, plane, row),
              rows_.width);
    });
  }

  int64_t elements() const override { return rows_.elements(); }

  void run_part(int64_t first, int64_t count) override { run_row(first, first, first, count); }

 private:
  void run_row(int64_t to, int64_t from_a, int64_t from_b, int64_t count) const {
    loop_.run(result_.as<Y>() + to, a_.as<A>() + from_a, b_.as<B>() + from_b, count);
  }

  Operand a_;
  Operand b_;
  Operand result_;
  Rows rows_;
  Loop loop_;
};

}  // namespace rondo
