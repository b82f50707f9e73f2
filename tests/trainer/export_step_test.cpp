#include "trainer/export_step.h"

#include <doctest/doctest.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/types.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "core/file_system.h"
#include "models/from_module.h"
#include "rondo_step.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/exports.h"
#include "trainer/trainer.h"

TEST_SUITE_BEGIN("trainer/export_step");

using namespace rondo;
using namespace rondo::test;

namespace {

struct RecurrentImpl : torch::nn::Module {
  RecurrentImpl() {
    register_module("lstm", lstm);
    register_module("head", head);
  }

  at::Tensor forward(const at::Tensor& x) {
    return head->forward(std::get<0>(lstm->forward(x.view({-1, 2, 2}).transpose(0, 1)))[-1]);
  }

  torch::nn::LSTM lstm{torch::nn::LSTMOptions(2, 5).num_layers(2)};
  torch::nn::Linear head{5, 3};
};

TORCH_MODULE(Recurrent);

// Its numbers are neither parameters nor buffers: they become constants of the step.
struct ScaledImpl : torch::nn::Module {
  ScaledImpl() { register_module("head", head); }

  at::Tensor forward(const at::Tensor& x) {
    return head->forward(x * numbers[0] + numbers[2]) / numbers[1];
  }

  std::vector<at::Tensor> numbers = torch::tensor({0.25F, 3.0F, 0.5F}).unbind();
  torch::nn::Linear head{4, 3};
};

TORCH_MODULE(Scaled);

struct WritingImpl : torch::nn::Module {
  WritingImpl() { register_module("head", head); }

  at::Tensor forward(const at::Tensor& x) { return head->forward(x.clamp_(0)); }

  torch::nn::Linear head{4, 3};
};

TORCH_MODULE(Writing);

// Its hidden layer has enough elements to be run part by part.
struct WideImpl : torch::nn::Module {
  WideImpl() {
    register_module("hidden", hidden);
    register_module("head", head);
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = hidden->forward(x);
    return head->forward((y * 0.5 + y).relu());
  }

  torch::nn::Linear hidden{4, 8192};
  torch::nn::Linear head{8192, 3};
};

TORCH_MODULE(Wide);

// Endless batches, as a fit of one process sees them.
std::vector<Batch> batches(int64_t count) {
  std::vector<Batch> all;
  LoaderPosition position;
  while (static_cast<int64_t>(all.size()) < count) {
    const auto stream = loader().stream(position, 7);
    while (auto batch = stream->next()) {
      all.push_back(*batch);
    }
  }
  all.resize(static_cast<size_t>(count));
  return all;
}

void train(rondo_step* step, const std::vector<Batch>& data, int64_t from, int64_t to) {
  for (int64_t i = from; i < to; ++i) {
    const at::Tensor x = data[static_cast<size_t>(i)]["x"].contiguous();
    const at::Tensor label = data[static_cast<size_t>(i)]["label"].contiguous();
    REQUIRE(rondo_step_bind(step, "x", x.data_ptr(), x.nbytes()));
    REQUIRE(rondo_step_bind(step, "label", label.data_ptr(), label.nbytes()));
    REQUIRE_MESSAGE(rondo_step_run(step), rondo_step_error());
  }
}

void check_model(rondo_step* step, Trainer& trainer) {
  const StateDict model = bits_of(trainer).at("model").as_dict();
  for (const StateDict::Item& item : model.items()) {
    const at::Tensor expected = item.second.as_tensor().contiguous();
    at::Tensor got = at::empty_like(expected);
    REQUIRE(rondo_step_read(step, ("model." + item.first).c_str(), got.data_ptr(), got.nbytes()));
    CHECK_MESSAGE(equal_bytes(got, expected), item.first);
  }
}

}  // namespace

TEST_CASE("an exported step leaves the bits of the trainer's run, also through a save") {
  for (const int64_t accumulation : {1, 2, 3}) {
    const TempDir dir;
    Trainer trainer(options_for(dir, accumulation), quiet_log());
    trainer.fit(loader());
    const std::string path = export_to(dir, options_for(dir, accumulation));
    rondo_step* step = rondo_step_open(path.c_str());
    REQUIRE_MESSAGE(step != nullptr, rondo_step_error());
    const int64_t count = kUpdates * accumulation;
    const std::vector<Batch> data = batches(count);
    train(step, data, 0, count / 2);
    const std::string half = (dir / "half.step").string();
    REQUIRE_MESSAGE(rondo_step_save(step, half.c_str()), rondo_step_error());
    const StateList plans = read_checkpoint(path).at("plans").as_list();
    CHECK(plans.size() == static_cast<size_t>(std::min<int64_t>(accumulation, 3)));
    CHECK(read_checkpoint(half).at("plans").as_list().size() == plans.size());
    for (const StateValue& plan : plans) {
      CHECK(plan.as_string().find("aten::") != std::string::npos);
    }
    rondo_step* again = rondo_step_open(half.c_str());
    REQUIRE_MESSAGE(again != nullptr, rondo_step_error());
    for (rondo_step* one : {step, again}) {
      train(one, data, count / 2, count);
      check_model(one, trainer);
      double lr = -1.0;
      REQUIRE(rondo_step_read(one, "optimizer.group/0/lr", &lr, sizeof lr));
      CHECK(lr == trainer.state().optimizer->groups()[0]["lr"].item<double>());
      rondo_step_close(one);
    }
  }
}

TEST_CASE("an exported step of any model leaves the bits of the trainer's run") {
  const auto check = [](const Factory<Model>& model) {
    const TempDir dir;
    TrainerOptions options = options_for(dir);
    options.model = model;
    Trainer trainer(options, quiet_log());
    trainer.fit(loader());
    const std::string path = export_to(dir, options);
    rondo_step* step = rondo_step_open(path.c_str());
    REQUIRE_MESSAGE(step != nullptr, rondo_step_error());
    train(step, batches(kUpdates), 0, kUpdates);
    check_model(step, trainer);
    rondo_step_close(step);
  };
  SUBCASE("an LSTM: LibTorch 2's operator of a layer asks whether gradients are recorded") {
    check(from_module([] { return Recurrent(); }, "x", cross_entropy("label")));
  }
  SUBCASE("numbers that lie side by side outside of the model's state") {
    check(from_module([] { return Scaled(); }, "x", cross_entropy("label")));
  }
}

TEST_CASE(
    "passes that are left out are so in the exported step too; a file without a word has all") {
  const TempDir dir;
  TrainerOptions options = options_for(dir);
  options.model = from_module([] { return Wide(); }, "x", cross_entropy("label"));
  const auto applied = [](const StateDict& saved) {
    return ExportedStep(step_file_from(saved)).passes().at(0);
  };
  const StateDict with = to_state(export_step(run_of(options)));
  StateDict of_old_version;
  for (const StateDict::Item& item : with.items()) {
    if (item.first != "without_passes") {
      of_old_version.set(item.first, item.second);
    }
  }
  for (const auto& pass : applied(of_old_version)) {
    CHECK_MESSAGE(pass.second > 0, pass.first);
  }
  options.backend.without_passes = {"results_in_place", "elementwise_chains"};
  const std::string path = export_to(dir, options);
  for (const auto& pass : applied(read_checkpoint(path))) {
    CHECK_MESSAGE(pass.second == 0, pass.first);
  }
  Trainer trainer(options, quiet_log());
  trainer.fit(loader());
  rondo_step* step = rondo_step_open(path.c_str());
  REQUIRE_MESSAGE(step != nullptr, rondo_step_error());
  train(step, batches(kUpdates), 0, kUpdates);
  check_model(step, trainer);
  rondo_step_close(step);
}

TEST_CASE("an output that is named like an input is described as what it is") {
  const TempDir dir;
  TrainerOptions options = options_for(dir);
  ProbeCallback::Options probe;
  probe.after_forward = [](Outputs& outputs) { outputs.set("x", outputs["loss"].detach() * 2); };
  options.callbacks = {use<ProbeCallback>(probe)};
  rondo_step* step = rondo_step_open(export_to(dir, options).c_str());
  REQUIRE_MESSAGE(step != nullptr, rondo_step_error());
  rondo_tensor input{};
  rondo_tensor output{};
  REQUIRE_MESSAGE(rondo_step_input(step, 0, &input), rondo_step_error());
  REQUIRE_MESSAGE(rondo_step_find(step, "x", &output), rondo_step_error());
  CHECK(std::string(input.name) == "x");
  CHECK(std::string(output.name) == "x");
  REQUIRE(input.dims == 2);
  CHECK(input.sizes[0] == 2);
  CHECK(input.sizes[1] == 4);
  CHECK(input.bytes == 2 * 4 * sizeof(float));
  CHECK(output.dims == 0);
  CHECK(output.bytes == sizeof(float));
  rondo_step_close(step);
}

TEST_CASE("a step that writes its input is refused: who runs it owns that") {
  const TempDir dir;
  TrainerOptions options = options_for(dir);
  options.model = from_module([] { return Writing(); }, "x", cross_entropy("label"));
  try {
    export_step(run_of(options));
    FAIL("nothing was thrown");
  } catch (const NotSupportedError& error) {
    CHECK(std::string(error.what()).find("\"x\"") != std::string::npos);
  }
}

TEST_CASE("a run that goes on from a checkpoint is exported with its state") {
  const TempDir dir;
  TrainerOptions options = options_for(dir);
  options.loop.max_steps = 5;
  options.checkpoint.steps = 5;
  {
    Trainer first(options, quiet_log());
    first.fit(loader());
  }
  options.loop.max_steps = kUpdates;
  RunConfig run = run_of(options);
  run.fit->from = LoadFrom(dir / "run" / "checkpoint_5.pt");
  const std::string path = (dir / "out.step").string();
  write_checkpoint(*real_file_system(), path, to_state(export_step(run)));
  Trainer trainer(options, quiet_log());
  trainer.fit(loader());
  rondo_step* step = rondo_step_open(path.c_str());
  REQUIRE_MESSAGE(step != nullptr, rondo_step_error());
  train(step, batches(kUpdates), 5, kUpdates);
  check_model(step, trainer);
  rondo_step_close(step);
}

TEST_CASE("without a checkpoint given, the newest readable one of the run counts") {
  const TempDir dir;
  TrainerOptions options = options_for(dir);
  options.loop.max_steps = 9;
  options.checkpoint.steps = 3;
  {
    Trainer first(options, quiet_log());
    first.fit(loader());
  }
  options.loop.max_steps = kUpdates;
  const auto begins_at = [&](const TrainerOptions& changed) {
    return export_step(run_of(changed)).manifest.at("update").as_int();
  };
  CHECK(begins_at(options) == 9);
  std::ofstream(dir / "run" / "checkpoint_9.pt") << "damaged";
  CHECK(begins_at(options) == 6);
  std::filesystem::remove(dir / "run" / "checkpoint_9.pt");
  std::string path = export_to(dir, options);
  CHECK(std::filesystem::exists(dir / "run" / "checkpoint_6.pt"));
  rondo_step* step = rondo_step_open(path.c_str());
  REQUIRE_MESSAGE(step != nullptr, rondo_step_error());
  TrainerOptions other = options;
  other.checkpoint.autoload_last_checkpoint = false;
  CHECK(begins_at(other) == 0);
  other.checkpoint.load.path = dir / "run" / "checkpoint_3.pt";
  CHECK(begins_at(other) == 3);
  RunConfig afresh = run_of(options);
  afresh.fit->from = LoadFrom::nothing();
  CHECK(export_step(afresh).manifest.at("update").as_int() == 0);
  Trainer trainer(options, quiet_log());
  trainer.fit(loader());
  train(step, batches(kUpdates), 6, kUpdates);
  check_model(step, trainer);
  rondo_step_close(step);
}

TEST_CASE("a run that is over is exported as it ended, and can go on") {
  const TempDir dir;
  TrainerOptions options = options_for(dir);
  options.loop.max_steps = 6;
  options.checkpoint.steps = 6;
  {
    Trainer whole(options, quiet_log());
    whole.fit(loader());
  }
  RunConfig run = run_of(options);
  run.fit->from = LoadFrom(dir / "run" / "checkpoint_6.pt");
  const std::string path = (dir / "out.step").string();
  write_checkpoint(*real_file_system(), path, to_state(export_step(run)));
  options.loop.max_steps = 7;  // the learning rate of update 7 is the last one of 6 updates
  Trainer trainer(options, quiet_log());
  trainer.fit(loader());
  rondo_step* step = rondo_step_open(path.c_str());
  REQUIRE_MESSAGE(step != nullptr, rondo_step_error());
  train(step, batches(7), 6, 7);
  check_model(step, trainer);
  rondo_step_close(step);
}

TEST_CASE("a validation that was due at the checkpoint is no batch of the export") {
  const TempDir dir;
  TrainerOptions options = options_for(dir);
  options.loop.max_steps = 6;
  options.loop.eval_frequency = 6;
  options.checkpoint.steps = 6;
  Trainer trainer(options, quiet_log());
  trainer.fit(loader(), {tiny_loader("val")});
  CHECK(export_step(run_of(options)).batches == 6);
}

TEST_CASE("batches of a group that differ are told apart before anything is written") {
  const TempDir dir;
  const auto export_of = [&](int64_t size) {
    TrainerOptions options = options_for(dir, 2);
    options.checkpoint.autoload_last_checkpoint = false;
    RunConfig run = run_of(options);
    run.fit->train = tiny_loader("train", size, 6);
    return export_step(run);
  };
  try {
    export_of(10);  // 6 and 4
    FAIL("nothing was thrown");
  } catch (const NotSupportedError& error) {
    const std::string text = error.what();
    CHECK_MESSAGE(
        (text.find("\"x\"") != std::string::npos && text.find("[6, 4]") != std::string::npos &&
         text.find("[4, 4]") != std::string::npos),
        text);
  }
  // 6 and 6, and 4 alone: there are whole groups of one shape.
  const ExportedStep step(export_of(16));
  CHECK(step.inputs().front().sizes.front() == 6);
  CHECK_THROWS_AS(export_of(6), NotSupportedError);  // no group has two batches
}

TEST_CASE("numbers in a file that do not fit together are refused") {
  const TempDir dir;
  TrainerOptions options = options_for(dir);
  options.backend.without_passes = {"cross_entropy_backward"};
  const StateDict good = to_state(export_step(run_of(options)));
  const auto refuses = [&](const std::function<void(StateDict&)>& spoil) {
    StateDict bad = good;
    spoil(bad);
    CHECK_THROWS_AS(step_file_from(bad), Error);
  };
  const auto program = [](StateDict& file) -> StateDict& {
    return std::get<StateList>(
               const_cast<StateValue::Variant&>(file.find("programs")->variant()))[0]
        .as_dict();
  };
  const auto slot = [&](StateDict& file) -> StateDict& {
    return std::get<StateList>(
               const_cast<StateValue::Variant&>(program(file).find("slots")->variant()))[0]
        .as_dict();
  };
  step_file_from(good);
  refuses([&](StateDict& file) { file.set("rondo_step", int64_t{99}); });
  refuses([&](StateDict& file) { file.set("cycle", StateList{int64_t{5}}); });
  refuses([&](StateDict& file) { file.set("state", StateDict{}); });
  refuses([&](StateDict& file) { program(file).set("storages", int64_t{-1}); });
  refuses([&](StateDict& file) { program(file).set("host_calls", StateList{}); });
  refuses([&](StateDict& file) { slot(file).set("storage", int64_t{1} << 30); });
  refuses([&](StateDict& file) { slot(file).set("sizes", StateList{int64_t{1} << 50}); });
  // What LibTorch would not look at before it writes.
  const auto made_by = [&](StateDict& file, const std::string& op) -> StateDict& {
    auto& instructions = std::get<StateList>(
        const_cast<StateValue::Variant&>(program(file).find("instructions")->variant()));
    for (const StateValue& instruction : instructions) {
      if (instruction.as_dict().at("op").as_string() == op) {
        const StateDict& result = instruction.as_dict().at("results").as_list()[0].as_dict();
        auto& slots = std::get<StateList>(
            const_cast<StateValue::Variant&>(program(file).find("slots")->variant()));
        return slots[static_cast<size_t>(result.at("tensor").as_int())].as_dict();
      }
    }
    throw std::logic_error("the step has no " + op);
  };
  refuses([&](StateDict& file) {
    made_by(file, "aten::_log_softmax_backward_data").set("strides", StateList{0, 1});
  });
  refuses([&](StateDict& file) {
    made_by(file, "aten::nll_loss_backward").set("sizes", StateList{1, 3});
  });
  refuses([&](StateDict& file) { slot(file).set("offset", int64_t{-3}); });
  refuses([&](StateDict& file) {
    program(file).set("outputs", StateList{StateList{"loss", int64_t{1} << 20}});
  });
}

TEST_CASE("a host call that is no schedule is refused by its name") {
  const TempDir dir;
  TrainerOptions options = options_for(dir);
  ProbeCallback::Options probe;
  probe.after_optimizer_step = [](Trainer& trainer, Optimizer& optimizer) {
    trainer.host_call(
        "average_weights", {optimizer.groups()[0]["lr"]}, [](const std::vector<at::Tensor>&) {});
  };
  options.callbacks = {use<ProbeCallback>(probe)};
  try {
    export_step(run_of(options));
    FAIL("nothing was thrown");
  } catch (const NotSupportedError& error) {
    CHECK(std::string(error.what()).find("average_weights") != std::string::npos);
  }
}

TEST_CASE("a schedule that does not count updates is refused") {
  const TempDir dir;
  TrainerOptions options = options_for(dir);
  options.schedulers = {use<LinearLR>({1.0, 0.0, "100sp"})};
  CHECK_THROWS_AS(export_step(run_of(options)), NotSupportedError);
}

TEST_CASE("a schedule that follows a metric is refused by its name") {
  const TempDir dir;
  TrainerOptions options = options_for(dir);
  ReduceLROnPlateau::Options plateau;
  plateau.metric = "loss";
  plateau.when = "epoch";
  options.schedulers = {use<ReduceLROnPlateau>(plateau)};
  try {
    export_step(run_of(options));
    FAIL("nothing was thrown");
  } catch (const NotSupportedError& error) {
    CHECK(std::string(error.what()).find("ReduceLROnPlateau") != std::string::npos);
  }
}

TEST_CASE("a relative schedule with a warm-up is exported as the numbers that it writes") {
  const TempDir dir;
  TrainerOptions options = options_for(dir);
  options.schedulers = {use<LinearLR>({1.0, 0.0, 8, {"lr", {}, true, "", 4}})};
  const std::vector<double> values = export_step(run_of(options)).schedules.at(0).at(0).values;
  const std::vector<double> expected = {0.0, 0.005, 0.01, 0.015, 0.02, 0.015, 0.01, 0.005, 0.0};
  REQUIRE(values.size() == expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    CHECK(values[i] == doctest::Approx(expected[i]));
  }
  AdamW::Options adam;
  adam.lr = 0.02;
  adam.params = {{{"*bias"}, "biases", {{"lr", 0.01}}}};
  options.optimizer = use<AdamW>(adam);
  CHECK_THROWS_AS(export_step(run_of(options)), NotSupportedError);
}

TEST_SUITE_END();
