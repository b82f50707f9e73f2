#include "trainer/pymarlin_arguments.h"

#include <doctest/doctest.h>

#include "core/error.h"

TEST_SUITE_BEGIN("trainer/pymarlin_arguments");

namespace rondo::pymarlin {
namespace {

TrainerArguments of(int64_t batch, int64_t limit) {
  TrainerArguments arguments;
  arguments.train_batch_size = batch;
  arguments.gpu_batch_size_limit = limit;
  return arguments;
}

}  // namespace

TEST_CASE("P1, P2: a batch is cut by the limit, or halved until it fits") {
  struct Case {
    int64_t batch, limit, step_batch, accumulation;
  };

  for (const Case& one : {Case{6, 1000, 6, 1},
                          Case{6, 3, 3, 2},
                          Case{12, 5, 3, 4},
                          Case{7, 2, 1, 7},
                          Case{10, 4, 2, 5}}) {
    CAPTURE(one.batch);
    CAPTURE(one.limit);
    CHECK(train_step_batch_size(of(one.batch, one.limit)) == one.step_batch);
    CHECK(gradient_accumulation(of(one.batch, one.limit)) == one.accumulation);
  }
}

TEST_CASE("P3: more ranks than samples are refused") {
  CHECK_THROWS_AS(train_step_batch_size(of(3, 512), 4), UsageError);
  CHECK(train_step_batch_size(of(8, 512), 4) == 2);
}

TEST_CASE("P35: unknown writers and backends are refused, and numbers out of range") {
  TrainerArguments arguments;
  CHECK_NOTHROW(check(arguments));
  arguments.writers = {"stdio"};
  CHECK_THROWS_AS(check(arguments), UsageError);
  arguments = {};
  arguments.backend = "sp-dp";
  CHECK_THROWS_AS(check(arguments), UsageError);
  arguments = {};
  arguments.epochs = 0;
  CHECK_THROWS_AS(check(arguments), UsageError);
  arguments = {};
  arguments.max_grad_norm = 0.0;
  CHECK_THROWS_AS(check(arguments), UsageError);
  arguments.clip_grads = false;
  CHECK_NOTHROW(check(arguments));
}

}  // namespace rondo::pymarlin

TEST_SUITE_END();
