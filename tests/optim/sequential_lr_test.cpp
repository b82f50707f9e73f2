#include "optim/schedules/sequential_lr.h"

#include <doctest/doctest.h>

#include "core/error.h"
#include "optim/register.h"
#include "optim/schedulers.h"

using namespace rondo;

namespace {

/// Warm-up over 10, then a cosine over 40, then constant.
SequentialLR::Options three_parts() {
  SequentialLR::Options options;
  options.schedulers = {
      use<LinearLR>({0.0, 1.0, 10}), use<CosineDecayLR>({1.0, 0.1, 40}), use<ConstantLR>({0.05})};
  return options;
}

}  // namespace

TEST_SUITE_BEGIN("optim/sequential_lr");

TEST_CASE("each schedule counts from its own beginning and takes over at its milestone") {
  SequentialLR sequence(three_parts());
  sequence.resolve({100, 10});
  CHECK(sequence.value(0) == 0.0);
  CHECK(sequence.value(5) == 0.5);
  CHECK(sequence.value(10) == 1.0);
  CHECK(sequence.value(30) == doctest::Approx(0.55));
  CHECK(sequence.value(49) > 0.1);
  CHECK(sequence.value(50) == 0.05);
  CHECK(sequence.value(5000) == 0.05);
  CHECK(sequence.length() == kEndless);
}

TEST_CASE("T138: milestones are the running sums of total_iters; a list that differs is an error") {
  SequentialLR::Options options = three_parts();
  options.milestones = {10, 50};
  SequentialLR given(options);
  given.resolve({100, 10});
  CHECK(given.value(50) == 0.05);
  options.milestones = {"1ep", 0.5};
  SequentialLR in_other_units(options);
  CHECK_NOTHROW(in_other_units.resolve({100, 10}));
  for (const std::vector<Duration>& wrong : {std::vector<Duration>{10, 40},
                                             std::vector<Duration>{10},
                                             std::vector<Duration>{10, 50, 60}}) {
    options.milestones = wrong;
    SequentialLR sequence(options);
    CHECK_THROWS_AS(sequence.resolve({100, 10}), UsageError);
  }
}

TEST_CASE("a part of length 0 is passed over") {
  SequentialLR::Options options;
  options.schedulers = {use<LinearLR>({0.0, 1.0, 0}), use<LinearLR>({0.5, 0.0, 10})};
  SequentialLR sequence(options);
  sequence.resolve({100, 10});
  CHECK(sequence.value(0) == 0.5);
  CHECK(sequence.length() == 10);
}

TEST_CASE("sequences nest, and parts may be shares of the whole run") {
  SequentialLR::Options inner = three_parts();
  inner.schedulers.pop_back();
  SequentialLR::Options outer;
  outer.schedulers = {use<SequentialLR>(inner), use<LinearLR>({0.1, 0.0, 0.5})};
  SequentialLR sequence(outer);
  sequence.resolve({100, 10});
  CHECK(sequence.value(5) == 0.5);
  CHECK(sequence.value(75) == doctest::Approx(0.05));
  CHECK(sequence.length() == 100);
}

TEST_CASE("C16: a sequence counts one unit: samples with samples, not with updates") {
  SequentialLR::Options options;
  options.schedulers = {use<LinearLR>({0.0, 1.0, "1000sp"}), use<CosineDecayLR>({1.0, 0.0, 0.9})};
  SequentialLR sequence(options);
  sequence.resolve({Time("10000sp"), 10});
  CHECK(sequence.unit() == TimeUnit::Sample);
  CHECK(sequence.value(500) == 0.5);
  CHECK(sequence.value(1000 + 4500) == doctest::Approx(0.5));
  CHECK(sequence.length() == 10000);
  CHECK_THROWS_AS(sequence.resolve({100, 10}), UsageError);
  options.schedulers = {use<LinearLR>({0.0, 1.0, 0}), use<CosineDecayLR>({1.0, 0.0, "500sp"})};
  SequentialLR without_warm_up(options);
  without_warm_up.resolve({100, 10});
  CHECK(without_warm_up.unit() == TimeUnit::Sample);
  options.schedulers = {use<LinearLR>({0.0, 1.0, "1000sp"}), use<ConstantLR>({1.0})};
  SequentialLR then_constant(options);
  then_constant.resolve({100, 10});
  CHECK(then_constant.unit() == TimeUnit::Sample);
}

TEST_CASE("an endless part before the last, no parts, and parts with a target of their own") {
  SequentialLR::Options options;
  CHECK_THROWS_AS(SequentialLR{options}, UsageError);
  options.schedulers = {use<ConstantLR>({0.1}), use<ConstantLR>({0.2})};
  SequentialLR endless(options);
  CHECK_THROWS_AS(endless.resolve({100, 10}), UsageError);
  options.schedulers = {use<ConstantLR>({0.1, {}, {"lr", {"a"}}})};
  CHECK_THROWS_AS(SequentialLR{options}, UsageError);
  options.schedulers = {use<ConstantLR>({0.1, {}, {"momentum"}})};
  CHECK_THROWS_AS(SequentialLR{options}, UsageError);
  options.target.param_group_key = "momentum";
  options.target.param_group_tags = {"a"};
  CHECK(SequentialLR(options).target().param_group_key == "momentum");
}

TEST_CASE("a part without an end ends at its milestone, and milestones have to be in order") {
  SequentialLR::Options options;
  options.schedulers = {
      use<ExponentialLR>({1.0, 0.5, 10}), use<LinearLR>({0.5, 0.0, 10}), use<ConstantLR>({0.1})};
  options.milestones = {20, 30};
  SequentialLR sequence(options);
  sequence.resolve({100, 10});
  CHECK(sequence.value(10) == 0.5);
  CHECK(sequence.value(20) == 0.5);
  CHECK(sequence.value(25) == 0.25);
  CHECK(sequence.value(30) == 0.1);
  options.schedulers[1] = use<ExponentialLR>({1.0, 0.5, 10});
  options.milestones = {20, 10};
  SequentialLR backwards(options);
  CHECK_THROWS_AS(backwards.resolve({100, 10}), UsageError);
}

TEST_CASE("a ratio moves milestones with what they are the sums of, each rounded down") {
  SequentialLR::Options options;
  options.schedulers = {
      use<LinearLR>({0.0, 1.0, 5}), use<LinearLR>({1.0, 0.0, 5}), use<ConstantLR>({0.1})};
  options.milestones = {5, 10};
  SequentialLR sequence(options);
  sequence.resolve({100, 10}, 0.5);
  CHECK(sequence.value(1) == 0.5);
  CHECK(sequence.value(2) == 1.0);
  CHECK(sequence.value(4) == 0.1);
}

TEST_CASE("a part has its own warm-up, and no own target") {
  SequentialLR::Options options;
  options.schedulers = {use<LinearLR>({1.0, 0.5, 10, {"lr", {}, false, "", 4}}),
                        use<ConstantLR>({0.1})};
  SequentialLR sequence(options);
  sequence.resolve({100, 10});
  CHECK(sequence.value(2) == 0.5);
  CHECK(sequence.value(4) == 1.0);
  CHECK(sequence.value(7) == 0.75);
  options.schedulers = {use<ConstantLR>({0.1, {}, {"lr", {}, true}})};
  CHECK_THROWS_AS(SequentialLR{options}, UsageError);
  options.schedulers = {use<ReduceLROnPlateau>({0.1, "val/loss"})};
  CHECK_THROWS_AS(SequentialLR{options}, UsageError);
}

TEST_CASE("a sequence is read from a config with its parts") {
  Registry<Scheduler> registry("scheduler");
  register_builtin_schedulers(registry);
  std::vector<Fault> faults;
  FaultSink sink("schedulers", faults);
  const ConfigValue written = registry.write(use<SequentialLR>(three_parts()));
  const auto factory = registry.read_single(written, sink);
  CHECK(faults.empty());
  REQUIRE(factory);
  const auto sequence = factory.make();
  sequence->resolve({100, 10});
  CHECK(sequence->value(5) == 0.5);
  CHECK(registry.write(factory).to_text() == written.to_text());
}

TEST_SUITE_END();
