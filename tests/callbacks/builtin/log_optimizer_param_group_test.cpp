#include "callbacks/builtin/log_optimizer_param_group.h"

#include <doctest/doctest.h>

#include <vector>

#include "core/error.h"
#include "optim/schedulers.h"
#include "optim/sgd.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("callbacks/builtin/log_optimizer_param_group");

TEST_CASE(
    "T121: two groups log lr/0 and lr/1, the values just used; an unknown number is refused") {
  for (const char* mode : {"eager", "traced"}) {
    const TempDir dir;
    std::vector<MemoryLogger::Entry> entries;
    MemoryLogger::Options memory;
    memory.entries = &entries;
    Sgd::Options sgd;
    sgd.lr = 0.5;
    ParamGroupOptions biases;
    biases.params = {"*bias"};
    biases.tag = "biases";
    biases.numbers = {{"lr", 0.125}};
    sgd.params = {biases};
    LinearLR::Options linear;
    linear.initial_learning_rate = 1.0;
    linear.end_learning_rate = 0.0;
    linear.total_iters = 4;
    linear.target.param_group_tags = {"biases"};
    TrainerOptions options = tiny_options(dir / "run");
    options.backend.mode = mode;
    options.optimizer = use<Sgd>(sgd);
    options.schedulers = {use<LinearLR>(linear)};
    options.callbacks = {use<LogOptimizerParamGroup>()};
    options.loggers = {use<MemoryLogger>(memory)};
    options.loop.max_steps = 4;
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"));
    using Values = std::vector<std::pair<int64_t, double>>;
    const bool biases_first = trainer.state().optimizer->groups()[0].tag == "biases";
    CHECK(values_of(entries, biases_first ? "lr/1" : "lr/0") ==
          Values{{1, 0.5}, {2, 0.5}, {3, 0.5}, {4, 0.5}});
    CHECK(values_of(entries, biases_first ? "lr/0" : "lr/1") ==
          Values{{1, 1.0}, {2, 0.75}, {3, 0.5}, {4, 0.25}});

    options.callbacks = {use<LogOptimizerParamGroup>({{"lrr"}})};
    CHECK_THROWS_AS(Trainer(options, quiet_log()), HookError);
  }
}

TEST_SUITE_END();
