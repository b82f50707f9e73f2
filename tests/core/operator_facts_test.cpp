#include "core/operator_facts.h"

#include <doctest/doctest.h>

#include "core/error.h"

TEST_SUITE_BEGIN("core/operator_facts");

using namespace rondo;

TEST_CASE("facts are found under the name of the operator with its overload") {
  OperatorFacts facts{"rondo_core_test::update_.scaled(Tensor(a!) x, Tensor scale) -> ()"};
  facts.scratch_bytes = [](const auto& arguments, const auto&) { return arguments[0].bytes(); };
  facts.scaled = ScaledForm{"twice", 1};
  CHECK(facts.name() == "rondo_core_test::update_.scaled");
  register_operator_facts(facts);

  const OperatorFacts* const found = find_operator_facts("rondo_core_test::update_.scaled");
  REQUIRE(found != nullptr);
  CHECK(found->scratch_bytes({{true, at::kDouble, {2, 3}}}, {}) == 48);
  CHECK(found->scaled->overload == "twice");
  CHECK(found->effects == OperatorFacts::Effects::OfSchema);
  CHECK_FALSE(found->is_collective);
  CHECK_FALSE(found->prepare);
  CHECK(find_operator_facts("rondo_core_test::update_") == nullptr);
}

TEST_CASE("an operator has its facts once, under a whole schema") {
  register_operator_facts({"rondo_core_test::once(Tensor x) -> Tensor"});
  CHECK_THROWS_WITH_AS(register_operator_facts({"rondo_core_test::once(Tensor x) -> Tensor"}),
                       doctest::Contains("rondo_core_test::once"),
                       UsageError);
  CHECK_THROWS_WITH_AS(register_operator_facts({"once(Tensor x) -> Tensor"}),
                       doctest::Contains("once(Tensor x)"),
                       UsageError);
  CHECK_THROWS_AS(register_operator_facts({"rondo_core_test::no_arguments"}), UsageError);
}

TEST_CASE("what is no tensor has no bytes") {
  CHECK(TensorShape().bytes() == 0);
  CHECK(TensorShape{true, at::kFloat, {}}.bytes() == 4);
  CHECK(TensorShape{true, at::kLong, {4, 0}}.bytes() == 0);
}

TEST_SUITE_END();
