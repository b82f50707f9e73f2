#include "pymarlin/trainer.h"

#include <ATen/Context.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "optim/sgd.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

TEST_SUITE_BEGIN("pymarlin/trainer");

using rondo::test::quiet_log;
using rondo::test::TempDir;
using rondo::test::tiny_loader;

namespace rondo::pymarlin {
namespace {

using Lines = std::vector<std::string>;

/// A classifier of tiny_loader's samples that writes down what is called.
class Classifier final : public ModuleInterface {
 public:
  Classifier() { register_module("head", head); }

  OptimizersSchedulers get_optimizers_schedulers(int64_t steps, int64_t epochs) override {
    calls.push_back(fmt::format("optimizers for {} steps, {} epochs", steps, epochs));
    return {use<Sgd>({0.1}), {}};
  }

  DataLoader get_train_dataloader(int64_t batch_size) override {
    return tiny_loader("train", 12, batch_size);
  }

  Loaders get_val_dataloaders(int64_t batch_size) override {
    return {tiny_loader("", 5, batch_size, 2), tiny_loader("other", 3, batch_size, 3)};
  }

  StepOutputs train_step(const at::Tensor& global_step, const Batch& batch, c10::Device) override {
    return step(global_step, batch);
  }

  StepOutputs val_step(const at::Tensor& global_step, const Batch& batch, c10::Device) override {
    return step(global_step, batch);
  }

  void on_begin_train_epoch(int64_t global_step, int64_t epoch) override {
    calls.push_back(fmt::format("begin epoch {} at {}", epoch, global_step));
  }

  void on_end_backward(const at::Tensor&, const at::Tensor&) override { ++backward_hooks; }

  void on_end_train_step(int64_t global_step, const CollatedOutputs& outputs) override {
    calls.push_back(fmt::format("step {} saw {} of {} losses, {} rows",
                                global_step,
                                outputs.at(1)[0].item<int64_t>(),
                                outputs.at(0).size(0),
                                outputs.at(2).size(0)));
    if (after_step) {
      after_step(global_step);
    }
  }

  void on_end_val_epoch(int64_t global_step,
                        const CollatedOutputs& outputs,
                        const std::string& key) override {
    calls.push_back(fmt::format("validated {} at {} saw {}, {} rows",
                                key,
                                global_step,
                                outputs.at(1)[0].item<int64_t>(),
                                outputs.at(2).size(0)));
  }

  void on_end_train_epoch(int64_t global_step, const CollatedOutputs& outputs) override {
    calls.push_back(fmt::format("end epoch at {}, {} rows", global_step, outputs.at(2).size(0)));
  }

  void on_end_train(int64_t global_step) override {
    calls.push_back(fmt::format("end at {}", global_step));
  }

  int64_t count(const std::string& begin) const {
    return std::count_if(calls.begin(), calls.end(), [&](const std::string& call) {
      return call.rfind(begin, 0) == 0;
    });
  }

  Lines calls;
  std::function<void(int64_t)> after_step;
  int64_t backward_hooks = 0;
  torch::nn::Linear head{4, 3};

 private:
  StepOutputs step(const at::Tensor& global_step, const Batch& batch) {
    const at::Tensor logits = head->forward(batch["x"]);
    return {at::cross_entropy_loss(logits, batch["label"]), global_step.clone(), logits};
  }
};

/// Two steps an epoch, each of three micro-batches of two samples.
TrainerArguments arguments_for(const TempDir& dir, int64_t epochs) {
  TrainerArguments arguments;
  arguments.epochs = epochs;
  arguments.train_batch_size = 6;
  arguments.gpu_batch_size_limit = 2;
  arguments.val_batch_size = 2;
  arguments.writers = {};
  arguments.disable_tqdm = true;
  arguments.checkpointer_args.save_dir = dir / "checkpoints";
  arguments.checkpointer_args.model_state_save_dir = dir / "models";
  return arguments;
}

struct Run {
  explicit Run(const TrainerArguments& arguments,
               const std::function<void(TrainerOptions&)>& change = {})
      : trainer(module, arguments, change, quiet_log()) {}

  std::shared_ptr<Classifier> module = std::make_shared<Classifier>();
  Trainer trainer;
};

}  // namespace

TEST_CASE("P6, P7, P8, P9, P10, P11, P21, P22: what is called in two epochs, and in which order") {
  const TempDir dir;
  Run run(arguments_for(dir, 2));
  CHECK(run.trainer.train_step_batch_size() == 2);
  CHECK(run.trainer.gradient_accumulation() == 3);
  run.trainer.train();
  CHECK(run.module->calls == Lines{"optimizers for 3 steps, 2 epochs",
                                   "begin epoch 0 at 0",
                                   "step 1 saw 1 of 3 losses, 6 rows",
                                   "step 2 saw 2 of 3 losses, 6 rows",
                                   "validated default at 2 saw 2, 5 rows",
                                   "validated other at 2 saw 2, 3 rows",
                                   "end epoch at 2, 12 rows",
                                   "begin epoch 1 at 2",
                                   "step 3 saw 3 of 3 losses, 6 rows",
                                   "step 4 saw 4 of 3 losses, 6 rows",
                                   "validated default at 4 saw 4, 5 rows",
                                   "validated other at 4 saw 4, 3 rows",
                                   "end epoch at 4, 12 rows",
                                   "end at 4"});
  CHECK(run.module->backward_hooks > 0);
  CHECK(run.trainer.global_steps_finished() == 4);
  CHECK(run.trainer.total_steps_finished() == 12);
}

TEST_CASE("recorded steps have the numbers of steps as written") {
  const TempDir dir;
  const auto weights_with = [&](const char* mode) {
    at::manual_seed(1);  // for the weights to begin with
    TrainerArguments arguments = arguments_for(dir, 3);
    arguments.checkpointer_args.save_dir = dir / mode;
    Run run(arguments, [&](TrainerOptions& options) {
      options.backend.mode = mode;
      options.seed = 1;
    });
    run.trainer.train();
    return run.module->get_state();
  };
  CHECK(first_difference(weights_with("traced"), weights_with("eager")).empty());
}

TEST_CASE("P5, P14, P15: epochs and validations are cut, and the estimate with them") {
  const TempDir dir;
  TrainerArguments arguments = arguments_for(dir, 2);
  arguments.max_train_steps_per_epoch = 1;
  arguments.max_val_steps_per_epoch = 1;
  Run run(arguments);
  CHECK(run.trainer.estimated_global_steps_per_epoch() == 1);
  run.trainer.train();
  CHECK(run.trainer.global_steps_finished() == 2);
  CHECK(run.module->count("validated default at 1 saw 1, 2 rows") == 1);
}

TEST_CASE("P23, P29: checkpoints and the model's file; a longer run goes on from them") {
  const TempDir dir;
  {
    Run run(arguments_for(dir, 2));
    run.trainer.train();
  }
  CHECK(std::filesystem::exists(dir / "checkpoints/model_2.pt"));
  CHECK(std::filesystem::exists(dir / "checkpoints/model_4.pt"));
  const StateDict model = read_checkpoint(dir / "models/model_model_1.pt");
  CHECK(model.contains("head.weight"));
  Run longer(arguments_for(dir, 3));
  longer.trainer.train();
  CHECK(longer.module->count("begin epoch") == 1);
  CHECK(longer.module->count("begin epoch 2 at 4") == 1);
  CHECK(longer.trainer.global_steps_finished() == 6);
  longer.module->update_state(model);
  CHECK(first_difference(longer.module->get_state(), model).empty());
  CHECK_THROWS_AS(longer.module->update_state(StateDict{{"other", int64_t{1}}}), CheckpointError);
}

TEST_CASE("P29, P31: a checkpoint is loaded when the trainer is made, and update_state counts") {
  const TempDir dir;
  StateDict weights;
  {
    Run run(arguments_for(dir, 2));
    run.trainer.train();
    weights = deep_copy(run.module->get_state());
  }
  Run again(arguments_for(dir, 3));
  CHECK(again.trainer.global_steps_finished() == 4);
  CHECK(again.trainer.total_steps_finished() == 12);
  CHECK(first_difference(again.module->get_state(), weights).empty());
  again.trainer.validate();
  CHECK(again.module->count("validated default at 4") == 1);

  // From another directory, a folder up.
  TrainerArguments elsewhere = arguments_for(dir, 3);
  elsewhere.checkpointer_args.save_dir = dir / "new";
  elsewhere.checkpointer_args.load_dir = dir.path();
  Run other(elsewhere);
  CHECK(other.trainer.global_steps_finished() == 4);
  CHECK(first_difference(other.module->get_state(), weights).empty());
}

TEST_CASE("validating weights that nobody trained is a warning") {
  const TempDir dir;
  Lines lines;
  const auto module = std::make_shared<Classifier>();
  const auto seeded = [](TrainerOptions& options) { options.seed = 1; };
  Trainer trainer(module, arguments_for(dir, 1), seeded, quiet_log(&lines));
  trainer.validate();
  REQUIRE_FALSE(lines.empty());
  CHECK(lines[0].find("untrained") != std::string::npos);
  trainer.train();
  lines.clear();
  trainer.validate();
  CHECK(lines.empty());
}

TEST_CASE("get_state has the whole run, and update_state brings it back") {
  const TempDir dir;
  const auto with_momentum = [](TrainerOptions& options) {
    Sgd::Options sgd;
    sgd.lr = 0.1;
    sgd.momentum = 0.9;
    options.optimizer = use<Sgd>(sgd);
    options.seed = 1;
  };
  TrainerArguments arguments = arguments_for(dir, 2);
  Run first(arguments, with_momentum);
  first.trainer.train();
  const StateDict state = first.trainer.get_state();

  TrainerArguments longer = arguments_for(dir, 3);
  longer.checkpointer_args.save_dir = dir / "second";
  Run second(longer, with_momentum);
  CHECK(second.trainer.global_steps_finished() == 0);
  second.trainer.update_state({});
  CHECK(second.trainer.global_steps_finished() == 0);
  second.trainer.update_state(state);
  CHECK(second.trainer.global_steps_finished() == 4);
  CHECK(first_difference(second.trainer.get_state().at("optimizer").as_dict(),
                         state.at("optimizer").as_dict()) == "");
  second.trainer.train();
  CHECK(second.module->count("begin epoch") == 1);

  longer.checkpointer_args.save_dir = dir / "checkpoints";
  Run resumed(longer, with_momentum);
  resumed.trainer.train();
  CHECK(first_difference(second.module->get_state(), resumed.module->get_state()) == "");
  CHECK_THROWS_AS(second.trainer.update_state(second.module->get_state()), CheckpointError);
}

TEST_CASE("an epoch that a stop interrupts ends once, after the resume") {
  const TempDir dir;
  {
    Run run(arguments_for(dir, 2));
    run.module->after_step = [&](int64_t step) {
      if (step == 1) {
        run.trainer.rondo_trainer().request_stop("stopped by the test");
      }
    };
    run.trainer.train();
    CHECK(run.module->count("begin epoch") == 1);
    CHECK(run.module->count("end epoch") == 0);
  }
  Run resumed(arguments_for(dir, 2));
  resumed.trainer.train();
  CHECK(resumed.module->count("begin epoch 0") == 0);
  CHECK(resumed.module->count("begin epoch 1 at 2") == 1);
  CHECK(resumed.module->count("end epoch at 2") == 1);
  CHECK(resumed.module->count("end epoch at 4") == 1);
  CHECK(resumed.module->count("end epoch") == 2);
}

TEST_CASE("epochs are counted whenever validations are") {
  for (const Time& frequency : {Time(1), Time("2ep")}) {
    CAPTURE(frequency.to_string());
    const TempDir dir;
    Run run(arguments_for(dir, 2),
            [&](TrainerOptions& options) { options.loop.eval_frequency = frequency; });
    run.trainer.train();
    CHECK(run.module->count("begin epoch") == 2);
    CHECK(run.module->count("end epoch at 2, 12 rows") == 1);
    CHECK(run.module->count("end epoch at 4, 12 rows") == 1);
    CHECK(run.module->count("end epoch") == 2);
  }
}

TEST_CASE("norms of weights and gradients are written every log_model_steps, but of exclude_list") {
  const TempDir dir;

  struct Norms final : public Writer {
    void log_scalar(const std::string& name, double value, int64_t step) override {
      if (name.find("_norm/") != std::string::npos) {
        lines.push_back(fmt::format("{} {}", step, name));
        CHECK(value > 0.0);
      }
    }

    Lines lines;
  };

  const auto norms = std::make_shared<Norms>();
  TrainerArguments arguments = arguments_for(dir, 3);
  arguments.stats_args.log_model_steps = 4;
  Run run(arguments);
  run.trainer.stats().add_writer(norms);
  run.trainer.train();
  CHECK(norms->lines == Lines{"4 grad_norm/head.weight", "4 weight_norm/head.weight"});
}

TEST_CASE("arguments that cannot be done are refused with what to do") {
  const TempDir dir;
  TrainerArguments arguments = arguments_for(dir, 1);
  arguments.backend = "sp-dp";
  CHECK_THROWS_AS(Run{arguments}, UsageError);
  arguments.backend = "sp";
  arguments.stats_args.exclude_list = "(";
  CHECK_THROWS_AS(Run{arguments}, UsageError);
}

TEST_CASE("TensorBoard's events go to tb_log_dir") {
  const TempDir dir;
  TrainerArguments arguments = arguments_for(dir, 1);
  arguments.writers = {"tensorboard"};
  arguments.writer_args.tb_log_dir = dir / "board";
  Run(arguments).trainer.train();
  CHECK(std::filesystem::exists(dir / "board"));
}

TEST_CASE("P25: checkpoint = false saves nothing") {
  const TempDir dir;
  TrainerArguments arguments = arguments_for(dir, 1);
  arguments.checkpointer_args.checkpoint = false;
  Run run(arguments);
  run.trainer.train();
  CHECK_FALSE(std::filesystem::exists(dir / "models"));
  CHECK_FALSE(std::filesystem::exists(dir / "checkpoints/model_2.pt"));
}

}  // namespace rondo::pymarlin

TEST_SUITE_END();
