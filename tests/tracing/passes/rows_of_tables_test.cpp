// Gradients of LSTM that are added up for each row of the table that its inputs come from.

#include <doctest/doctest.h>
#include <torch/types.h>

#include <cmath>
#include <vector>

#include "tracing/kernel_checks.h"
#include "tracing/lstm_layer_given.h"
#include "tracing/passes/passes.h"

TEST_SUITE_BEGIN("tracing/passes/rows_of_tables");

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr const char* kGradientOfTable = "rondo::lstm_table_backward";

Tensors layer(const at::Tensor& x, const Batch& all) {
  return call(kOwn, {x, all["w0"], all["w1"], all["w2"], all["w3"], all["states"], all["cells"]});
}

/// A layer on an embedding, and its gradient down to the table.
struct OnTable {
  int64_t rows = 11;
  bool batch_first = true;
  int64_t padding = -1;
  bool is_exact = false;
  bool input_gradient_is_seen = false;
  bool other_numbers_come_back = false;
  bool numbers_are_written = false;
  bool counts_frequency = false;

  LstmShape shape = {20, 16, 24, 32};

  Batch batch(int step) const {
    Batch all = batch_of(Given(shape, step));
    all.set("x", random({rows, shape.inputs}, step + 20));
    all["x"][rows - 1].fill_(NAN);  // no row that is looked up
    all.set("numbers",
            at::arange(shape.rows())
                .mul(step + 3)
                .remainder(rows - 1)
                .view({batch_first ? shape.batch : shape.steps, -1}));
    return all;
  }

  Tensors run(const Batch& all) const {
    const at::Tensor numbers = all["numbers"].clone();
    const at::Tensor looked_up = at::embedding(all["x"], numbers, padding);
    const at::Tensor x = batch_first ? looked_up.transpose(0, 1).contiguous() : looked_up;
    const Tensors made = layer(x, all);
    if (numbers_are_written) {
      numbers.fill_(1);
    }
    Tensors gradients = call(kOwnGradient,
                             {all["dy"],
                              all["dstates"],
                              all["dcells"],
                              x,
                              all["w0"],
                              all["w1"],
                              all["states"],
                              all["cells"],
                              made[0],
                              made[3]});
    const at::Tensor dx = gradients[0];
    gradients[0] =
        at::embedding_dense_backward(batch_first ? dx.transpose(0, 1) : dx,
                                     other_numbers_come_back ? numbers.remainder(3) : numbers,
                                     rows,
                                     padding,
                                     counts_frequency);
    if (input_gradient_is_seen) {
      gradients.push_back(dx);
    }
    return gradients;
  }
};

/// Runs it as recorded, and as a plan after the passes: the results are near each other.
/// \return gradients that are added up for each row of the table
int added_up_for_rows(const OnTable& on_table) {
  register_with_dispatcher();
  const Recorded recorded([&](const Batch& all) { return on_table.run(all); }, on_table.batch(0));
  const StepProgram passed = clean_up(recorded.program, {}, on_table.is_exact).program;
  JitExecutor as_recorded(recorded.program);
  PlannedExecutor plan(passed, TextLog(LogLevel::Error), {on_table.is_exact, /*chains=*/true});
  for (int step = 0; step < 5; ++step) {
    const Tensors expected = as_recorded.run(on_table.batch(step), kAlwaysDue);
    const Tensors& got = plan.run(on_table.batch(step), kAlwaysDue);
    for (size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(i);
      CHECK(at::allclose(got[i], expected[i], 1e-4, 1e-4));
    }
  }
  int by_own_kernel = 0;
  for (const PlannedInstruction& planned : plan.plan().instructions) {
    const Instruction& instruction = passed.instructions[planned.index];
    const bool is_own = planned.lowering == Lowering::Own || !can_run_lstm(on_table.shape);
    by_own_kernel += operator_name(instruction.op) == kGradientOfTable && is_own ? 1 : 0;
  }
  CHECK(by_own_kernel == count(passed, kGradientOfTable));
  return count(passed, kGradientOfTable);
}

}  // namespace

TEST_CASE("a gradient down to a table is that of the rows that were looked up, added up") {
  register_with_dispatcher();
  for (const int64_t padding : {-1, 2}) {
    for (const bool batch_first : {false, true}) {
      CAPTURE(padding);
      CAPTURE(batch_first);
      const LstmShape shape = {20, 16, 24, 32};
      constexpr int64_t kRows = 11;
      const auto batch = [=](int step) {
        const Given given(shape, step);
        Batch all = batch_of(given);
        all.set("x", random({kRows, shape.inputs}, step + 20));
        const std::vector<int64_t> sizes = batch_first
                                               ? std::vector<int64_t>{shape.batch, shape.steps}
                                               : std::vector<int64_t>{shape.steps, shape.batch};
        all.set("numbers", at::arange(shape.rows()).mul(step + 3).remainder(kRows).view(sizes));
        return all;
      };
      check_close(
          [=](const Batch& all) {
            const at::Tensor numbers = batch_first ? all["numbers"].t() : all["numbers"];
            const Tensors made = layer(at::embedding(all["x"], numbers), all);
            return call(kGradientOfTable,
                        {all["dy"],
                         all["dstates"],
                         all["dcells"],
                         all["x"],
                         all["w0"],
                         all["w1"],
                         all["states"],
                         all["cells"],
                         made[0],
                         made[3],
                         numbers,
                         padding});
          },
          batch);
    }
  }
}

TEST_CASE("a pass adds up for each row of a table, where that is less work and need not be exact") {
  OnTable on_table;
  SUBCASE("sequences first") {
    CHECK(added_up_for_rows(on_table) == 1);
  }
  SUBCASE("steps first") {
    on_table.batch_first = false;
    CHECK(added_up_for_rows(on_table) == 1);
  }
  SUBCASE("a row without gradient") {
    on_table.padding = 2;
    CHECK(added_up_for_rows(on_table) == 1);
  }
  SUBCASE("a quarter of the inputs") {
    on_table.rows = 80;
    CHECK(added_up_for_rows(on_table) == 1);
  }
  SUBCASE("more than that") {
    on_table.rows = 81;
    CHECK(added_up_for_rows(on_table) == 0);
  }
  SUBCASE("somebody sees the gradient of the inputs") {
    on_table.input_gradient_is_seen = true;
    CHECK(added_up_for_rows(on_table) == 0);
  }
  SUBCASE("what comes back is for other rows") {
    on_table.other_numbers_come_back = true;
    CHECK(added_up_for_rows(on_table) == 0);
  }
  SUBCASE("numbers are others when it comes back") {
    on_table.numbers_are_written = true;
    CHECK(added_up_for_rows(on_table) == 0);
  }
  SUBCASE("gradients are divided by how often a row was looked up") {
    on_table.counts_frequency = true;
    CHECK(added_up_for_rows(on_table) == 0);
  }
  SUBCASE("an exact step") {
    on_table.is_exact = true;
    CHECK(added_up_for_rows(on_table) == 0);
  }
}

TEST_SUITE_END();
