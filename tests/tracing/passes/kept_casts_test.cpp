#include "tracing/passes/kept_casts.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <algorithm>
#include <memory>
#include <string>

#include "support/step_probe.h"

TEST_SUITE_BEGIN("tracing/passes/kept_casts");

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr int kGroup = 4;

struct Group {
  bool host_writes = false;  ///< the weights, between two batches of a group
  bool step_writes = false;  ///< the weights, in the batches between the first and the last
};

/// Groups of four batches: products in bfloat16, whose sum is an update of the weights.
StepProbe in_groups(const Group& group) {
  const at::Tensor w = torch::randn({6, 3});
  const at::Tensor sum = torch::zeros({6, 3});
  const auto now = std::make_shared<GroupPosition>();
  StepProbe probe;
  probe.state = {{"w", w}, {"sum", sum}};
  probe.key = [now](int step) {
    *now = {step % kGroup == 0, step % kGroup == kGroup - 1, kGroup};
    return StepKey{"train", *now, "bf16"};
  };
  probe.batch = [=](int step) {
    if (group.host_writes && step % 5 == 2) {
      w.mul_(0.75);
    }
    return random_batch(step);
  };
  probe.body = [=](Backend&, const Batch& batch) {
    const at::Tensor y = batch["x"].to(at::kBFloat16).mm(w.to(at::kBFloat16)).to(at::kFloat);
    if (now->is_first) {
      sum.zero_();
    }
    sum.add_(batch["x"].t().mm(y), 0.01);
    if (group.step_writes && !now->is_first && !now->is_last) {
      w.mul_(0.9);
    }
    if (now->is_last) {
      w.sub_(sum);
    }
    return Outputs{{"y", y}};
  };
  return probe;
}

/// Casts of the steps of this name that are kept.
int64_t kept_in(const ProbeRun& run, const std::string& name) {
  for (const StepReport& report : run.reports) {
    if (report.name.rfind(name, 0) == 0) {
      for (const auto& [pass, casts] : report.stats.passes) {
        if (pass == KeptCasts::kPass) {
          return casts;
        }
      }
    }
  }
  return -1;
}

}  // namespace

TEST_CASE("weights are cast once a group, by its first step") {
  const auto make = [] { return in_groups({}); };
  CHECK(traced_against_eager(make, 6 * kGroup, 6) == "");
  const auto traced = backend_of("traced");
  const ProbeRun run = run_probe(make, *traced, 3 * kGroup);
  CHECK(kept_in(run, "train_accumulate_first") == 1);
  CHECK(kept_in(run, "train_accumulate_of") == 1);
  CHECK(kept_in(run, "train_update_of") == 1);
}

TEST_CASE("weights that were written since are cast again") {
  Group group;
  SUBCASE("by the host") {
    group.host_writes = true;
  }
  SUBCASE("by a step between the first and the last") {
    group.step_writes = true;
  }
  SUBCASE("by both") {
    group.host_writes = true;
    group.step_writes = true;
  }
  CHECK(traced_against_eager([&] { return in_groups(group); }, 6 * kGroup, 6) == "");
}

TEST_SUITE_END();
