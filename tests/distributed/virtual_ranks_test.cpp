#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "callbacks/core/early_exit_callback.h"
#include "callbacks/core/virtual_ranks.h"
#include "core/error.h"
#include "distributed/connect.h"
#include "distributed/single_process.h"
#include "forked_ranks.h"
#include "ranked_run.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Counts sums over processes.
class CountingRanks final : public Communicator {
 public:
  explicit CountingRanks(std::shared_ptr<Communicator> ranks) : ranks_(std::move(ranks)) {}

  int rank() const override { return ranks_->rank(); }

  int world_size() const override { return ranks_->world_size(); }

  const char* transport() const override { return ranks_->transport(); }

  void all_reduce(at::Tensor& values) override {
    ++sums;
    ranks_->all_reduce(values);
  }

  void broadcast(at::Tensor& values, int root) override { ranks_->broadcast(values, root); }

  std::vector<std::string> all_gather(const std::string& bytes) override {
    return ranks_->all_gather(bytes);
  }

  void barrier() override { ranks_->barrier(); }

  void give_up(const std::string& cause) noexcept override { ranks_->give_up(cause); }

  int64_t sums = 0;

 private:
  std::shared_ptr<Communicator> ranks_;
};

RankedRun eager(RankedRun run) {
  run.mode = "eager";
  return run;
}

}  // namespace

TEST_SUITE_BEGIN("distributed/virtual_ranks");

TEST_CASE("in one process a traced run with virtual ranks equals an eager one, bit for bit") {
  for (const RankedRun& run : ranked_runs()) {
    for (const int64_t virtual_ranks : {2, 4}) {
      CAPTURE(run.name);
      CAPTURE(virtual_ranks);
      CHECK(first_difference(in_one_process(run, virtual_ranks),
                             in_one_process(eager(run), virtual_ranks)) == "");
    }
  }
}

TEST_CASE("4 virtual ranks give the same bits on 1, 2 and 4 processes") {
  for (const RankedRun& run : ranked_runs()) {
    CAPTURE(run.name);
    const StateDict alone = in_one_process(run, 4);
    REQUIRE(alone.find("model") != nullptr);
    for (const int processes : {2, 4}) {
      CAPTURE(processes);
      for (const StateDict& bits : on_processes(processes, [&](const auto& communicator) {
             return trained(run, 4, communicator);
           })) {
        CHECK(first_difference(alone, bits) == "");
      }
    }
  }
}

TEST_CASE("eager processes have the bits of a traced one") {
  const RankedRun run = ranked_runs()[5];
  const StateDict alone = in_one_process(run, 4);
  for (const StateDict& bits : on_processes(
           4, [&](const auto& communicator) { return trained(eager(run), 4, communicator); })) {
    CHECK(first_difference(alone, bits) == "");
  }
}

TEST_CASE("a run that 4 processes saved goes on in 1, 2 and 4 as if it had not ended") {
  for (const size_t chosen : {0, 4, 6}) {
    const RankedRun run = ranked_runs()[chosen];
    CAPTURE(run.name);
    const StateDict uninterrupted = in_one_process(run, 4);
    const TempDir dir;
    const std::filesystem::path file = dir.path() / "checkpoint_5.pt";
    on_processes(4, [&](const auto& communicator) {
      return trained(run, 4, communicator, LoadFrom::nothing(), 5, file);
    });
    for (const int processes : {1, 2, 4}) {
      CAPTURE(processes);
      for (const StateDict& bits : on_processes(processes, [&](const auto& communicator) {
             return trained(run, 4, communicator, LoadFrom(file));
           })) {
        CHECK(first_difference(uninterrupted, bits) == "");
      }
    }
  }
}

TEST_CASE("another number of virtual ranks is another run") {
  const RankedRun run = ranked_runs()[0];
  CHECK(first_difference(in_one_process(run, 1), in_one_process(run, 2)) != "");
  CHECK(first_difference(in_one_process(run, 2), in_one_process(run, 4)) != "");
}

TEST_CASE("a resumed run keeps its virtual ranks") {
  const RankedRun run = ranked_runs()[0];
  const TempDir dir;
  const std::filesystem::path file = dir.path() / "checkpoint_5.pt";
  on_processes(1, [&](const auto& communicator) {
    return trained(run, 4, communicator, LoadFrom::nothing(), 5, file);
  });
  const StateDict other = on_processes(1, [&](const auto& communicator) {
    return trained(run, 2, communicator, LoadFrom(file));
  })[0];
  REQUIRE(other.find("error") != nullptr);
  const std::string error = other.at("error").as_string();
  CHECK(error.find("distributed.virtual_ranks is 2") != std::string::npos);
  CHECK(error.find("with 4 virtual ranks") != std::string::npos);
}

TEST_CASE("C44: the seed of a virtual rank follows from that of the run and its number") {
  const RankedRun run = ranked_runs()[1];  // draws nothing
  const StateDict bits = in_one_process(run, 4);
  for (int64_t rank = 0; rank < 4; ++rank) {
    CAPTURE(rank);
    torch::manual_seed(static_cast<uint64_t>(7 + rank));
    const at::Tensor expected = at::globalContext().defaultGenerator(at::kCPU).get_state();
    CHECK(
        equal_bytes(bits.at("rng/virtual/" + std::to_string(rank) + "/cpu").as_tensor(), expected));
  }
}

TEST_CASE("the processes must share the virtual ranks evenly") {
  SingleProcess one;
  CHECK_THROWS_AS(VirtualRanks(one, 3), UsageError);
  CHECK(problem_of_ranks(2, 4) == "");
  const std::string problem = problem_of_ranks(8, 4);
  CHECK(problem.find("4 virtual ranks") != std::string::npos);
  CHECK(problem.find("1, 2 or 4") != std::string::npos);
}

TEST_CASE("P3: more processes than samples in a batch are an error") {
  const RankedRun run = ranked_runs()[0];
  for (const StateDict& bits : on_processes(2, [&](const auto& communicator) {
         const TempDir dir;
         TrainerOptions options = options_of(run, 2, dir.path());
         options.communicator = communicator;
         Trainer trainer(options, quiet_log());
         trainer.fit(ranked_images(8, 1));
         return StateDict();
       })) {
    REQUIRE(bits.find("error") != nullptr);
    CHECK(bits.at("error").as_string().find("a batch has 1 samples, and there are 2 processes") !=
          std::string::npos);
  }
}

TEST_CASE("C83: an odd number of samples has the metrics of one process, whatever their number") {
  const auto metrics = [](const auto& communicator) {
    const TempDir dir;
    TrainerOptions options = options_of(ranked_runs()[4], 2, dir.path());
    options.communicator = communicator;
    Trainer trainer(options, quiet_log());
    StateDict values;
    const Metrics of_validation = trainer.validate(ranked_images(7, 2));
    for (const Metrics::Item& item : of_validation.items()) {
      values.set(item.first, *of_validation.number(item.first));
    }
    return values;
  };
  const StateDict alone = on_processes(1, metrics)[0];
  CHECK(alone.size() == 2);  // loss and accuracy
  for (const StateDict& values : on_processes(2, metrics)) {
    CHECK(first_difference(alone, values) == "");
  }
}

TEST_CASE("P19: processes add what they have at the last batch of an update only") {
  const auto sums_with = [](int64_t accumulation, const std::string& mode) {
    const RankedRun run{"mlp", mlp(0.0), momentum(), mode, accumulation};
    const StateDict counted = on_processes(2, [&](const auto& communicator) {
      const auto counting = std::make_shared<CountingRanks>(communicator);
      trained(run, 2, counting);
      return StateDict{{"sums", counting->sums}};
    })[0];
    return counted.at("sums").as_int();
  };
  const int64_t sums = sums_with(1, "eager");
  CHECK(sums > 0);
  CHECK(sums_with(3, "eager") == sums);
  CHECK(sums_with(1, "traced") == sums);
  CHECK(sums_with(3, "traced") == sums);
}

TEST_CASE("all processes stop after the update in which one of them is asked to") {
  const RankedRun run = ranked_runs()[0];
  const std::vector<StateDict> ends = on_processes(2, [&](const auto& communicator) {
    const TempDir dir;
    TrainerOptions options = options_of(run, 2, dir.path());
    options.communicator = communicator;
    Trainer trainer(options, quiet_log());
    if (communicator->rank() == 1) {
      trainer.request_stop("asked by the test");
    }
    trainer.fit(ranked_images(48, 16));
    return StateDict{{"update", trainer.state().global_step()}};
  });
  for (const StateDict& end : ends) {
    REQUIRE(end.find("update") != nullptr);
    CHECK(end.at("update").as_int() == 1);
  }
}

TEST_CASE("all processes end early where one of them finds a reason") {
  const RankedRun run = ranked_runs()[0];
  const std::vector<StateDict> ends = on_processes(2, [&](const auto& communicator) {
    const TempDir dir;
    TrainerOptions options = options_of(run, 2, dir.path());
    options.communicator = communicator;
    ProbeCallback::Options probe;
    probe.train_batch_end = [&](Trainer& trainer) {
      if (communicator->rank() == 1 && trainer.state().global_step() == 2) {
        trainer.step_slots().early_exit->add([] { return true; });
      }
    };
    options.callbacks.push_back(use<ProbeCallback>(probe));
    Trainer trainer(options, quiet_log());
    trainer.fit(ranked_images(48, 16));
    return StateDict{{"update", trainer.state().global_step()}};
  });
  for (const StateDict& end : ends) {
    REQUIRE(end.find("update") != nullptr);
    CHECK(end.at("update").as_int() == 3);
  }
}

TEST_CASE("a further fit begins with the checkpoint that the first process wrote") {
  const RankedRun run = ranked_runs()[0];
  const std::vector<StateDict> ends = on_processes(2, [&](const auto& communicator) {
    const TempDir dir;
    TrainerOptions options = options_of(run, 2, dir.path());
    options.communicator = communicator;
    options.loop.max_steps = 2;
    Trainer trainer(options, quiet_log());
    trainer.fit(ranked_images(48, 16));
    FitOptions further;
    further.duration = Time::in(TimeUnit::Update, 2);
    trainer.fit(further, ranked_images(48, 16));
    return StateDict{{"update", trainer.state().global_step()},
                     {"checkpoint", trainer.state().last_checkpoint.value_or("").string()}};
  });
  REQUIRE(ends[1].find("update") != nullptr);
  CHECK(ends[1].at("update").as_int() == 4);
  CHECK_FALSE(ends[1].at("checkpoint").as_string().empty());
  CHECK(ends[1].at("checkpoint").as_string() == ends[0].at("checkpoint").as_string());
}

TEST_SUITE_END();
