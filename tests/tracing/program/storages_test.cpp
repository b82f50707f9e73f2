#include "tracing/program/storages.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <doctest/doctest.h>

TEST_SUITE_BEGIN("tracing/program/storages");

using namespace rondo;

TEST_CASE("a storage is written after one instruction, and before or at another") {
  StepProgram program;
  program.storages = 1;
  program.slots.resize(1);
  program.slots[0].storage = 0;
  const c10::OperatorHandle relu =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::relu_", "");
  program.instructions.resize(5, Instruction{relu, {}, {}, {}});
  program.instructions[2].writes = {0};
  const StorageFacts facts(program);
  CHECK(facts.is_written(0, 0, 2));
  CHECK(facts.is_written(0, 1, 4));
  CHECK_FALSE(facts.is_written(0, 0, 1));
  CHECK_FALSE(facts.is_written(0, 2, 4));
}

TEST_SUITE_END();
