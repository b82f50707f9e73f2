#include "callbacks/core/sharded_updates.h"

#include <doctest/doctest.h>
#include <torch/optim/adam.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "forked_ranks.h"
#include "optim/adam.h"
#include "optim/torch_optimizer.h"
#include "ranked_run.h"
#include "support/every_optimizer.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

RankedRun sharded(RankedRun run) {
  run.is_sharded = true;
  return run;
}

/// Of the optimizer's state, on this process.
int64_t own_elements(const Trainer& trainer) {
  int64_t elements = 0;
  for (const ParamGroup& group : trainer.state().optimizer->groups()) {
    for (const Parameter& parameter : group.params) {
      for (const NamedTensor& state : parameter.states()) {
        elements += state.second.numel();
      }
    }
  }
  return elements;
}

}  // namespace

TEST_SUITE_BEGIN("distributed/sharded_updates");

TEST_CASE("each process owns neighbouring parameters, with about as many elements") {
  CHECK(owners_of({4, 4, 4, 4}, 2) == std::vector<int>{0, 0, 1, 1});
  CHECK(owners_of({4, 4, 4, 4}, 4) == std::vector<int>{0, 1, 2, 3});
  CHECK(owners_of({10, 1, 1}, 2) == std::vector<int>{0, 1, 1});
  CHECK(owners_of({1, 1, 10}, 2) == std::vector<int>{0, 0, 1});
  CHECK(owners_of({0, 0}, 2) == std::vector<int>{0, 0});
  CHECK(owners_of({5}, 4) == std::vector<int>{2});
}

TEST_CASE("ranks that share the updates have the bits of one process") {
  for (const RankedRun& run : ranked_runs()) {
    CAPTURE(run.name);
    const StateDict alone = in_one_process(run, 4);
    for (const int processes : {2, 4}) {
      CAPTURE(processes);
      const std::vector<StateDict> all = on_processes(processes, [&](const auto& communicator) {
        return trained(sharded(run), 4, communicator);
      });
      CHECK(first_difference(alone, all.front()) == "");
      for (const StateDict& bits : all) {
        REQUIRE(bits.find("model") != nullptr);
        CHECK(first_difference(alone.at("model").as_dict(), bits.at("model").as_dict()) == "");
      }
    }
  }
}

TEST_CASE("every optimizer that can be recorded can be shared out") {
  for (const RegisteredOptimizer& optimizer : every_optimizer()) {
    if (!optimizer.factory.make()->eager_only().empty()) {
      continue;
    }
    CAPTURE(optimizer.name);
    CAPTURE(optimizer.keys);
    const RankedRun run{"mlp", mlp(0.0), optimizer.factory};
    const StateDict alone = in_one_process(run, 2);
    REQUIRE(alone.find("optimizer") != nullptr);
    CHECK(first_difference(alone, on_processes(2, [&](const auto& communicator) {
                             return trained(sharded(run), 2, communicator);
                           })[0]) == "");
  }
}

TEST_CASE("a rank keeps the state of its own parameters alone") {
  const auto elements = [](bool is_sharded) {
    RankedRun run{"mlp", mlp(0.0), adamw()};
    run.is_sharded = is_sharded;
    return on_processes(2, [&](const auto& communicator) {
      const TempDir dir;
      TrainerOptions options = options_of(run, 2, dir.path());
      options.communicator = communicator;
      const Trainer trainer(options, quiet_log());
      return StateDict{{"elements", own_elements(trainer)}};
    });
  };
  const std::vector<StateDict> whole = elements(false);
  const std::vector<StateDict> shares = elements(true);
  const int64_t first = shares[0].at("elements").as_int();
  const int64_t second = shares[1].at("elements").as_int();
  CHECK(first > 0);
  CHECK(second > 0);
  CHECK(first + second == whole[0].at("elements").as_int());
}

TEST_CASE("what sharded ranks saved goes on on any number of ranks, sharded or not") {
  for (const size_t chosen : {0, 8}) {
    const RankedRun run = ranked_runs()[chosen];
    CAPTURE(run.name);
    const StateDict uninterrupted = in_one_process(run, 4);
    const TempDir dir;
    const std::filesystem::path file = dir.path() / "checkpoint_5.pt";
    on_processes(4, [&](const auto& communicator) {
      return trained(sharded(run), 4, communicator, LoadFrom::nothing(), 5, file);
    });
    for (const int processes : {1, 2, 4}) {
      CAPTURE(processes);
      for (const RankedRun& next : {run, sharded(run)}) {
        CAPTURE(next.is_sharded);
        CHECK(
            first_difference(uninterrupted, on_processes(processes, [&](const auto& communicator) {
                               return trained(next, 4, communicator, LoadFrom(file));
                             })[0]) == "");
      }
    }
  }
}

TEST_CASE("weights alone can be loaded by sharded ranks, and a state given back") {
  const RankedRun run = ranked_runs()[0];
  const TempDir dir;
  const std::filesystem::path file = dir.path() / "checkpoint_5.pt";
  on_processes(1, [&](const auto& communicator) {
    return trained(run, 2, communicator, LoadFrom::nothing(), 5, file);
  });
  const auto fine_tuned = [&](bool is_sharded) {
    return [&, is_sharded](const std::shared_ptr<Communicator>& communicator) {
      const TempDir own;
      RankedRun next = run;
      next.is_sharded = is_sharded;
      TrainerOptions options = options_of(next, 2, own.path());
      options.communicator = communicator;
      options.checkpoint.load.path = file;
      options.checkpoint.load.weights_only = true;
      Trainer trainer(options, quiet_log());
      trainer.fit(ranked_images(run.samples, 16));
      trainer.load_state_dict(trainer.state_dict());
      return bits_of(trainer);
    };
  };
  const StateDict expected = on_processes(2, fine_tuned(false))[0];
  REQUIRE(expected.find("model") != nullptr);
  CHECK(first_difference(expected, on_processes(2, fine_tuned(true))[0]) == "");
}

TEST_CASE("an optimizer of LibTorch cannot be shared out, and says so") {
  const RankedRun run{
      "mlp", mlp(0.0), from_torch<torch::optim::Adam>(torch::optim::AdamOptions(1e-3)), "eager"};
  for (const StateDict& bits : on_processes(
           2, [&](const auto& communicator) { return trained(sharded(run), 2, communicator); })) {
    REQUIRE(bits.find("error") != nullptr);
    CHECK(bits.at("error").as_string().find("distributed.shard_optimizer") != std::string::npos);
  }
}

TEST_SUITE_END();
