#include <doctest/doctest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <string>
#include <vector>

#include "../../examples/gan/gan.h"
#include "callbacks/core/sparsity_callback.h"
#include "checkpoint/checkpoint_file.h"
#include "configs/toml_file.h"
#include "core/error.h"
#include "core/random.h"
#include "data/tensor_dataset.h"
#include "loops/message_of_setup.h"
#include "models/builtin/mlp.h"
#include "models/from_module.h"
#include "models/model_state.h"
#include "support/builtins.h"
#include "support/contains.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/run_config.h"

using namespace rondo;
using namespace rondo::test;

namespace {

struct GanCase {
  std::string mode = "eager";
  int64_t critic_updates = 1;
  int64_t accumulation = 1;
  int64_t micro_batch = 0;
  bool has_schedules = false;
};

LinearLR::Options linear(std::string optimizer, double from, double to, int64_t updates) {
  LinearLR::Options options;
  options.target.optimizer = std::move(optimizer);
  options.initial_learning_rate = from;
  options.end_learning_rate = to;
  options.total_iters = updates;
  return options;
}

TrainerOptions gan_options(const std::filesystem::path& model_dir, const GanCase& c) {
  TrainerOptions options = tiny_options(model_dir);
  options.backend.mode = c.mode;
  options.model = use<Dcgan>({8, 4, 2});
  options.optimizer = {};
  options.optimizers = {{"critic", {"critic_*"}, use<Adam>({1e-2})},
                        {"generator", {"generator_*"}, use<Sgd>({1e-2})}};
  options.step = use<GanStep>({c.critic_updates});
  options.loop.grad_accum_steps = c.accumulation;
  options.loop.eval_frequency = 0;
  options.precision.max_gradient_norm = 0.5;
  if (c.micro_batch > 0) {
    options.loop.device_train_microbatch_size = c.micro_batch;
  }
  if (c.has_schedules) {
    options.schedulers = {use<LinearLR>(linear("critic", 1e-2, 1e-3, 12)),
                          use<LinearLR>(linear("generator", 2e-2, 1e-3, 12))};
  }
  return options;
}

/// 7 pictures of 8 x 8 in batches of 3: the last one of a pass is short.
DataLoader pictures() {
  KeyedRandom random(3);
  at::Tensor images = at::empty({7, 1, 8, 8});
  for (int64_t i = 0; i < images.numel(); ++i) {
    images.data_ptr<float>()[i] = static_cast<float>(random.uniform());
  }
  LoaderOptions batches;
  batches.batch_size = 3;
  return DataLoader("train", from_tensors({{"image", images}}), batches);
}

StateDict gan_after(const std::filesystem::path& model_dir, const GanCase& c, int64_t updates) {
  TrainerOptions options = gan_options(model_dir, c);
  options.loop.max_steps = updates;
  Trainer trainer(options, quiet_log());
  trainer.fit(pictures());
  CHECK(trainer.state().global_step() == updates);
  return bits_of(trainer);
}

/// The model is one weight [2], the loss is half the sum of its cubes.
class Cubes final : public ModuleModel {
 public:
  Cubes() {
    const torch::NoGradGuard no_grad;
    weight_ = register_parameter("weight", torch::tensor({1.0, -2.0}, torch::kDouble));
  }

  Outputs forward(const Batch&) override { return {{"loss", weight_.pow(3).sum().div(2.0)}}; }

 private:
  at::Tensor weight_;
};

/// Two parts of a loss, and no "loss".
class TwoParts final : public ModuleModel {
 public:
  TwoParts() { weight_ = register_parameter("weight", torch::ones({4})); }

  Outputs forward(const Batch& batch) override {
    const at::Tensor near = (batch["x"] - weight_).pow(2).mean();
    return {{"loss/near", near}, {"loss/small", weight_.abs().sum() * 0.1}};
  }

 private:
  at::Tensor weight_;
};

double lr_of(Trainer& trainer, const char* optimizer) {
  return trainer.state().optimizer_named(optimizer).groups()[0]["lr"].item<double>();
}

}  // namespace

TEST_SUITE_BEGIN("loops/own_steps");

TEST_CASE("a step with two optimizers: traced equals eager bit for bit") {
  for (const GanCase& c : {GanCase{"", 1, 1, 0, false},
                           GanCase{"", 1, 2, 0, true},
                           GanCase{"", 3, 1, 0, true},
                           GanCase{"", 2, 2, 2, true}}) {
    CAPTURE(c.critic_updates);
    CAPTURE(c.accumulation);
    CAPTURE(c.micro_batch);
    const TempDir dir;
    GanCase eager = c;
    eager.mode = "eager";
    GanCase traced = c;
    traced.mode = "traced";
    CHECK(first_difference(gan_after(dir / "eager", eager, 24),
                           gan_after(dir / "traced", traced, 24)) == "");
  }
}

TEST_CASE("a step with two optimizers that is resumed gives the bits of one that was not stopped") {
  for (const char* mode : {"eager", "traced"}) {
    for (const int64_t stop : {3, 4, 5}) {
      CAPTURE(mode);
      CAPTURE(stop);
      const TempDir dir;
      const GanCase c{mode, 3, 2, 0, true};
      gan_after(dir / "stopped", c, stop);
      StateDict whole = gan_after(dir / "whole", c, 10);
      StateDict stopped = gan_after(dir / "stopped", c, 10);
      // When numbers were written last has clocks; the numbers are in the optimizers' groups.
      whole.erase("schedulers");
      stopped.erase("schedulers");
      CHECK(first_difference(whole, stopped) == "");
    }
  }
}

TEST_CASE("a checkpoint keeps named optimizers and their schedulers under their names") {
  const TempDir dir;
  GanCase c;
  c.has_schedules = true;
  gan_after(dir / "run", c, 2);
  const StateDict state = read_checkpoint(dir / "run" / "checkpoint_2.pt");
  CHECK(state.find("optimizer") == nullptr);
  CHECK(state.at("optimizers/critic/state").as_dict().contains("critic_look.weight"));
  CHECK(state.at("optimizers/generator/state").as_dict().contains("generator_draw.weight"));
  CHECK(state.at("schedulers/critic").as_list().size() == 1);
  CHECK(state.at("schedulers/generator").as_list().size() == 1);
}

TEST_CASE("an optimizer that does not step keeps its state, and its schedule stands") {
  const TempDir dir;
  std::vector<double> generator;
  std::vector<double> critic;
  std::vector<bool> has_moved;
  at::Tensor before;
  ProbeCallback::Options probe;
  probe.train_batch_end = [&](Trainer& trainer) {
    generator.push_back(lr_of(trainer, "generator"));
    critic.push_back(lr_of(trainer, "critic"));
    const at::Tensor now =
        trainer.state().optimizer_named("generator").trained()[0].second.detach().clone();
    has_moved.push_back(before.defined() && !at::equal(before, now));
    before = now;
  };
  TrainerOptions options = gan_options(dir / "run", {"traced", 3, 1, 0, true});
  options.callbacks = {use<ProbeCallback>(probe)};
  options.loop.max_steps = 6;
  Trainer(options, quiet_log()).fit(pictures());
  const auto at = [](double from, double to, double done) {
    return doctest::Approx(from + (to - from) * done / 12.0);
  };
  for (size_t i = 0; i < 6; ++i) {
    CAPTURE(i);
    CHECK(critic[i] == at(1e-2, 1e-3, static_cast<double>(i + 1)));
    CHECK(generator[i] == at(2e-2, 1e-3, i < 2 ? 0.0 : i < 5 ? 3.0 : 6.0));
    CHECK(has_moved[i] == (i == 2 || i == 5));
  }
}

TEST_CASE("hooks of a step are told which optimizer steps, and each is clipped by its own norm") {
  const TempDir dir;
  std::vector<std::string> names;
  std::vector<double> norms;
  ProbeCallback::Options probe;
  probe.before_optimizer_step = [&](Trainer&, Optimizer& optimizer) {
    names.push_back(optimizer.name());
  };
  probe.after_optimizer_step = [&](Trainer&, Optimizer& optimizer) {
    double sum = 0.0;
    for (const at::Tensor& grad : optimizer.grads()) {
      sum += grad.pow(2).sum().item<double>();
    }
    norms.push_back(std::sqrt(sum));
  };
  TrainerOptions options = gan_options(dir / "run", {});
  options.precision.max_gradient_norm = 1e-3;
  options.callbacks = {use<ProbeCallback>(probe)};
  options.loop.max_steps = 1;
  Trainer(options, quiet_log()).fit(pictures());
  CHECK(names == std::vector<std::string>{"critic", "generator"});
  CHECK(norms[0] == doctest::Approx(1e-3));
  CHECK(norms[1] == doctest::Approx(1e-3));
}

TEST_CASE("numbers of several optimizers are logged under their names") {
  const TempDir dir;
  std::vector<MemoryLogger::Entry> entries;
  MemoryLogger::Options memory;
  memory.entries = &entries;
  TrainerOptions options = gan_options(dir / "run", {"traced"});
  options.callbacks = {use<LogOptimizerParamGroup>()};
  options.loggers = {use<MemoryLogger>(memory)};
  options.logging.log_steps = int64_t{1};
  options.loop.max_steps = 4;
  Trainer(options, quiet_log()).fit(pictures());
  CHECK(values_of(entries, "critic/lr/0").size() == 4);
  CHECK(values_of(entries, "generator/lr/0").size() == 4);
  const auto critic = values_of(entries, "loss/critic");
  const auto generator = values_of(entries, "loss/generator");
  const auto loss = values_of(entries, "loss");
  REQUIRE(loss.size() == 4);
  for (size_t i = 0; i < loss.size(); ++i) {
    CHECK(loss[i].second == doctest::Approx(critic[i].second + generator[i].second));
  }
}

TEST_CASE("what does not fit in a run of several optimizers is an error that says what") {
  const TempDir dir;
  const TrainerOptions good = gan_options(dir / "run", {});
  TrainerOptions both = good;
  both.optimizer = use<Sgd>({0.1});
  CHECK(contains(message_of_setup(both), "optimizer and optimizers"));
  TrainerOptions shared = good;
  shared.optimizers[1].params = {"generator_*", "critic_look*"};
  CHECK(contains(message_of_setup(shared), "critic_look.weight"));
  TrainerOptions none = good;
  none.optimizers[1].params = {"drawer*"};
  CHECK(contains(message_of_setup(none), "optimizers.generator.params"));
  CHECK(contains(message_of_setup(none), "generator_draw.weight"));
  TrainerOptions twice = good;
  twice.optimizers[1].name = "critic";
  CHECK(contains(message_of_setup(twice), "two have the name \"critic\""));
  TrainerOptions unnamed = good;
  unnamed.schedulers = {use<LinearLR>(linear("", 1.0, 0.5, 3))};
  CHECK(contains(message_of_setup(unnamed), "schedulers[0] (LinearLR).optimizer"));
  CHECK(contains(message_of_setup(unnamed), "critic, generator"));
  TrainerOptions misnamed = good;
  misnamed.schedulers = {use<LinearLR>(linear("critics", 1.0, 0.5, 3))};
  CHECK(contains(message_of_setup(misnamed), "did you mean \"critic\"?"));
}

TEST_CASE("a parameter that no optimizer picks is warned of") {
  const TempDir dir;
  std::vector<std::string> warnings;
  TrainerOptions options = gan_options(dir / "run", {});
  options.optimizers[1].params = {"generator_seed*", "generator_norm*", "generator_grow*"};
  options.loop.max_steps = 1;
  Trainer(options, quiet_log(&warnings)).fit(pictures());
  CHECK(std::any_of(warnings.begin(), warnings.end(), [](const std::string& warning) {
    return contains(warning, "generator_draw.weight, generator_draw.bias");
  }));
}

TEST_CASE("a step for another model says which one it needs") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.step = use<GanStep>();
  options.loop.max_steps = 1;
  std::string text;
  try {
    Trainer(options, quiet_log()).fit(tiny_loader("train"));
  } catch (const std::exception& error) {
    text = describe(std::current_exception());
  }
  CHECK(contains(text, "Dcgan"));
}

TEST_CASE("C40: parts of a loss are summed, and logged over all batches of an update") {
  for (const char* mode : {"eager", "traced"}) {
    CAPTURE(mode);
    const TempDir dir;
    std::vector<MemoryLogger::Entry> entries;
    MemoryLogger::Options memory;
    memory.entries = &entries;
    TrainerOptions options = tiny_options(dir / "run");
    options.backend.mode = mode;
    options.model = use<TwoParts>();
    options.loggers = {use<MemoryLogger>(memory)};
    options.logging.log_steps = int64_t{1};
    options.loop.grad_accum_steps = 2;
    options.loop.max_steps = 6;
    Trainer(options, quiet_log()).fit(tiny_loader("train", 8, 2));
    const auto loss = values_of(entries, "loss");
    const auto near = values_of(entries, "loss/near");
    const auto small = values_of(entries, "loss/small");
    REQUIRE(loss.size() == 6);
    REQUIRE(near.size() == 6);
    CHECK(small[0].second == doctest::Approx(0.4));
    for (size_t i = 0; i < loss.size(); ++i) {
      CHECK(loss[i].second == doctest::Approx(near[i].second + small[i].second));
    }
  }
}

TEST_CASE("Sam takes the gradient at the neighbour where the loss is higher") {
  for (const char* mode : {"eager", "traced"}) {
    CAPTURE(mode);
    const TempDir dir;
    TrainerOptions options = tiny_options(dir / "run");
    options.backend.mode = mode;
    options.model = use<Cubes>();
    options.optimizer = use<Sgd>({0.01});
    options.step = use<Sam>({0.1});
    options.loop.max_steps = 5;
    options.loop.eval_frequency = 0;
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"));
    double w[2] = {1.0, -2.0};
    for (int step = 0; step < 5; ++step) {
      const double g[2] = {1.5 * w[0] * w[0], 1.5 * w[1] * w[1]};
      const double norm = std::sqrt(g[0] * g[0] + g[1] * g[1]) + 1e-12;
      for (int i = 0; i < 2; ++i) {
        const double above = w[i] + 0.1 * g[i] / norm;
        w[i] -= 0.01 * 1.5 * above * above;
      }
    }
    const at::Tensor found = trainer.state().model->module().parameters()[0];
    CHECK(found[0].item<double>() == doctest::Approx(w[0]).epsilon(1e-12));
    CHECK(found[1].item<double>() == doctest::Approx(w[1]).epsilon(1e-12));
  }
}

TEST_CASE("Sam and Distillation: traced equals eager, accumulated and resumed, bit for bit") {
  Mlp::Options teacher;
  teacher.sizes = {4, 8, 3};
  teacher.input = "x";
  Distillation::Options distillation;
  distillation.teacher = use<Mlp>(teacher);
  const std::pair<const char*, Factory<TrainStep>> kSteps[] = {
      {"Sam", use<Sam>({0.1})},
      {"Distillation", use<Distillation>(distillation)},
      {"StandardStep", use<StandardStep>()}};
  for (const auto& [name, step] : kSteps) {
    for (const int64_t accumulation : {1, 2}) {
      CAPTURE(name);
      CAPTURE(accumulation);
      const TempDir dir;
      const auto after = [&, &step = step](const char* run, const char* mode, int64_t updates) {
        TrainerOptions options = tiny_options(dir / run);
        options.backend.mode = mode;
        options.step = step;
        options.optimizer = use<Adam>({1e-2});
        options.precision.max_gradient_norm = 0.5;
        options.loop.grad_accum_steps = accumulation;
        options.loop.max_steps = updates;
        Trainer trainer(options, quiet_log());
        trainer.fit(tiny_loader("train"));
        return bits_of(trainer);
      };
      const StateDict eager = after("eager", "eager", 14);
      CHECK(first_difference(eager, after("traced", "traced", 14)) == "");
      after("resumed", "traced", 5);
      CHECK(first_difference(eager, after("resumed", "traced", 14)) == "");
    }
  }
}

TEST_CASE("a teacher is named as the model is, or as other components are") {
  for (const std::string teacher :
       {"{ name = \"Mlp\", sizes = [4, 3] }", "{ Mlp = { sizes = [4, 3] } }"}) {
    CAPTURE(teacher);
    const auto read = [](const std::string& text) {
      return read_run_config(parse_toml(text, "run.toml"), builtins()).init;
    };
    const TrainerOptions options = read(
        "[trainer.init]\nmodel_dir = \"x\"\nmodel = { name = \"Mlp\", sizes = [4, 3] }\n"
        "step = { Distillation = { teacher = " +
        teacher + " } }\n");
    CHECK(options.step.name() == "Distillation");
    CHECK(read(options.config_text).config_text == options.config_text);
    CHECK(contains(options.config_text, "name = \"Mlp\""));
  }
}

TEST_CASE("the default step is StandardStep, bit for bit") {
  const TempDir dir;
  const auto after = [&](const char* run, const Factory<TrainStep>& step) {
    TrainerOptions options = tiny_options(dir / run);
    options.step = step;
    options.loop.max_steps = 6;
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"));
    return bits_of(trainer);
  };
  CHECK(first_difference(after("default", {}), after("named", use<StandardStep>())) == "");
}

TEST_CASE("without a step of its own a run updates each of several optimizers") {
  const TempDir dir;
  const auto after = [&](const char* run, bool is_split) {
    TrainerOptions options = tiny_options(dir / run);
    options.backend.mode = "traced";
    if (is_split) {
      options.optimizer = {};
      options.optimizers = {{"weights", {"*weight"}, use<Adam>({1e-2})},
                            {"biases", {"*bias"}, use<Adam>({1e-2})}};
    } else {
      options.optimizer = use<Adam>({1e-2});
    }
    options.loop.max_steps = 8;
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"));
    return deep_copy(model_state(trainer.state().model->module()));
  };
  CHECK(first_difference(after("one", false), after("two", true)) == "");
}

TEST_CASE("a distilled student comes closer to its teacher, which stays and is not saved") {
  const TempDir dir;
  Mlp::Options mlp;
  mlp.sizes = {4, 8, 3};
  mlp.input = "x";
  TrainerOptions of_teacher = tiny_options(dir / "teacher");
  of_teacher.model = use<Mlp>(mlp);
  of_teacher.optimizer = use<Adam>({5e-2});
  of_teacher.loop.max_steps = 40;
  Trainer(of_teacher, quiet_log()).fit(tiny_loader("train"));

  Distillation::Options distillation;
  distillation.teacher = use<Mlp>(mlp);
  distillation.weights = dir / "teacher" / "checkpoint_40.pt";
  distillation.weight = 0.7;
  std::vector<MemoryLogger::Entry> entries;
  MemoryLogger::Options memory;
  memory.entries = &entries;
  TrainerOptions options = tiny_options(dir / "student");
  options.backend.mode = "traced";
  options.step = use<Distillation>(distillation);
  options.loggers = {use<MemoryLogger>(memory)};
  options.logging.log_steps = int64_t{1};
  options.loop.num_epochs = 40;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  const auto taught = values_of(entries, "loss/teacher");
  REQUIRE(taught.size() == 200);
  double first = 0.0;
  double last = 0.0;
  for (size_t i = 0; i < 5; ++i) {
    first += taught[i].second;
    last += taught[taught.size() - 1 - i].second;
  }
  CHECK(last < 0.7 * first);
  const auto& step = trainer.slot<TrainStep>();
  const StateDict file = read_checkpoint(distillation.weights);
  for (const NamedTensor& tensor : step.constants()) {
    CHECK(at::equal(tensor.second, file.at("model").as_dict().at(tensor.first).as_tensor()));
  }
  const StateDict saved = read_checkpoint(dir / "student" / "checkpoint_200.pt");
  CHECK(saved.find("callbacks/step") == nullptr);
}

TEST_CASE("Sam leaves pruned weights at zero where it climbs") {
  for (const char* dtype : {"fp32", "bf16_pure"}) {
    CAPTURE(dtype);
    const TempDir dir;
    int64_t forwards = 0;
    Trainer* running = nullptr;
    ProbeCallback::Options probe;
    probe.train_batch_start = [&](Trainer& trainer, const Batch&) { running = &trainer; };
    probe.before_forward = [&](Batch&) {
      const SparsityMasks& masks = *running->slot<SparsityCallback>().masks();
      for (const Mask& mask : masks.groups()[0].masks()) {
        const at::Tensor pruned = mask.weight().detach().masked_select(mask.kept().logical_not());
        CHECK(pruned.numel() > 0);
        CHECK(pruned.eq(0).all().item<bool>());
      }
      ++forwards;
    };
    TrainerOptions options = tiny_options(dir / "run");
    options.step = use<Sam>({0.5});
    options.sparsity = {0.5};
    options.precision.dtype = dtype;
    options.precision.on_unsupported = "emulate";
    options.loop.max_steps = 4;
    options.loop.eval_frequency = 0;
    options.callbacks = {use<ProbeCallback>(probe)};
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train"));
    CHECK(forwards == 8);
  }
}

TEST_CASE("Sam says that it trains with one optimizer") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.optimizer = {};
  options.optimizers = {{"weights", {"*weight"}, use<Adam>({1e-2})},
                        {"biases", {"*bias"}, use<Adam>({1e-2})}};
  options.step = use<Sam>({0.1});
  CHECK(contains(message_of_setup(options), "Sam trains with one optimizer"));
}

TEST_SUITE_END();
