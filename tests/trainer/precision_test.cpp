#include <doctest/doctest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "callbacks/core/precision_callback.h"
#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "loops/fit_run.h"
#include "models/builtin/mlp.h"
#include "optim/adam.h"
#include "optim/lion.h"
#include "optim/schedulers.h"
#include "optim/sgd.h"
#include "support/glyphs_run.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr const char* kPrecisionNames[] = {"fp32", "fp64", "bf16", "fp16", "bf16_pure"};

/// A small network with everything that a precision touches; fp16 is emulated.
TrainerOptions options_in(const std::string& dtype, const std::filesystem::path& model_dir) {
  TrainerOptions options = tiny_options(model_dir);
  Mlp::Options model;
  model.sizes = {4, 6, 3};
  model.input = "x";
  options.model = use<Mlp>(model);
  options.optimizer = use<AdamW>({1e-2});
  options.precision.dtype = dtype;
  options.precision.on_unsupported = "emulate";
  options.loop.max_steps = 12;
  return options;
}

/// Training data of two batches and a short one.
DataLoader train_loader() {
  LoaderOptions batches;
  batches.batch_size = 4;
  batches.shuffle = true;
  return tiny_loader("train", 10, batches);
}

StateDict trained(TrainerOptions options, const std::string& mode) {
  const TempDir dir;
  options.model_dir = dir / "run";
  options.backend.mode = mode;
  Trainer trainer(options, quiet_log());
  trainer.fit(train_loader());
  return bits_of(trainer);
}

/// The same run, stopped in the middle and resumed by another Trainer.
StateDict resumed(TrainerOptions options) {
  const TempDir dir;
  options.model_dir = dir / "run";
  options.backend.mode = "traced";
  options.checkpoint.steps = 5;
  const DataLoader train = train_loader();
  {
    Trainer first(options, quiet_log());
    FitRun run(first, train, {}, {});
    while (first.state().global_step() < 7 && run.advance()) {
    }
  }
  Trainer second(options, quiet_log());
  second.fit(train);
  return bits_of(second);
}

void check_alike(const TrainerOptions& options) {
  const StateDict eager = trained(options, "eager");
  CHECK(first_difference(eager, trained(options, "traced")) == "");
  TrainerOptions saving = options;
  saving.checkpoint.steps = 5;
  CHECK(first_difference(eager, resumed(saving)) == "");
}

/// Factories by name.
const std::vector<std::pair<std::string, Factory<Optimizer>>>& optimizer_factories() {
  static const std::vector<std::pair<std::string, Factory<Optimizer>>> all = [] {
    Sgd::Options sgd;
    sgd.lr = 0.05;
    sgd.momentum = 0.9;
    return std::vector<std::pair<std::string, Factory<Optimizer>>>{
        {"Sgd", use<Sgd>(sgd)}, {"AdamW", use<AdamW>({1e-2})}, {"Lion", use<Lion>({1e-3})}};
  }();
  return all;
}

/// fp16 whose scale is far too large at first.
TrainerOptions with_large_scale(const std::filesystem::path& model_dir) {
  TrainerOptions options = options_in("fp16", model_dir);
  options.precision.initial_loss_scale = std::ldexp(1.0, 20);
  options.precision.steps_per_increase = 3;
  options.loop.max_steps = 12;
  return options;
}

at::Tensor weight_of(const Trainer& trainer) {
  return trainer.state().optimizer->trained()[0].second.detach().clone();
}

}  // namespace

TEST_SUITE_BEGIN("trainer/precision");

TEST_CASE(
    "in every precision, with each clipping and accumulation, traced equals eager and resumed "
    "unstopped, bit for bit") {
  for (const char* dtype : kPrecisionNames) {
    for (const auto& [name, optimizer] : optimizer_factories()) {
      for (const int64_t accumulation : {1, 2}) {
        for (const char* clipping : {"none", "norm", "value"}) {
          CAPTURE(dtype);
          CAPTURE(name);
          CAPTURE(accumulation);
          CAPTURE(clipping);
          TrainerOptions options = options_in(dtype, "");
          options.optimizer = optimizer;
          options.loop.grad_accum_steps = accumulation;
          if (clipping == std::string("norm")) {
            options.precision.max_gradient_norm = 0.3;
          } else if (clipping == std::string("value")) {
            options.precision.max_gradient_value = 0.05;
          }
          options.precision.initial_loss_scale = std::ldexp(1.0, 18);
          options.precision.steps_per_increase = 4;
          check_alike(options);
        }
      }
    }
  }
}

TEST_CASE("fp64: weights, gradients and losses have double precision") {
  const TempDir dir;
  TrainerOptions options = options_in("fp64", dir / "run");
  at::ScalarType gradient = at::kFloat;
  at::ScalarType loss = at::kFloat;
  ProbeCallback::Options probe;
  probe.before_optimizer_step = [&](Trainer&, Optimizer& optimizer) {
    gradient = optimizer.grads()[0].scalar_type();
  };
  probe.after_backward = [&](Trainer&, const Outputs& outputs) {
    loss = outputs["loss"].scalar_type();
  };
  options.callbacks = {use<ProbeCallback>(probe)};
  Trainer trainer(options, quiet_log());
  trainer.fit(train_loader(), {tiny_loader("val", 6)});
  CHECK((gradient == at::kDouble));
  CHECK((loss == at::kDouble));
  CHECK((weight_of(trainer).scalar_type() == at::kDouble));
  const StateDict saved = bits_of(trainer);
  for (const auto& [name, value] : saved.at("model").as_dict().items()) {
    CHECK((value.as_tensor().scalar_type() == at::kDouble));
  }
}

TEST_CASE("T92: fp16 on a CPU warns and runs bf16 without a scaler; the option makes it an error") {
  const TempDir dir;
  TrainerOptions options = options_in("fp16", dir / "run");
  options.precision.on_unsupported = "fallback";
  std::vector<std::string> lines;
  Trainer trainer(options, quiet_log(&lines));
  trainer.fit(train_loader());
  CHECK(trainer.slot<PrecisionCallback>().dtype() == "bf16");
  CHECK(trainer.slot<PrecisionCallback>().scaler() == nullptr);
  REQUIRE(!lines.empty());
  CHECK(lines[0].find("fp16") != std::string::npos);
  CHECK(lines[0].find("bf16") != std::string::npos);
  CHECK(first_difference(bits_of(trainer), trained(options_in("bf16", ""), "eager")) == "");

  options.precision.on_unsupported = "error";
  options.model_dir = dir / "other";
  try {
    const Trainer refused(options, quiet_log());
    FAIL("no error");
  } catch (const Error&) {
    CHECK(describe(std::current_exception()).find("fp16") != std::string::npos);
  }
}

TEST_CASE("T91: only fp16 has a scaler, and only then a checkpoint has its state") {
  for (const char* dtype : kPrecisionNames) {
    CAPTURE(dtype);
    const TempDir dir;
    Trainer trainer(options_in(dtype, dir / "run"), quiet_log());
    trainer.fit(train_loader());
    CHECK(bits_of(trainer).contains("grad_scaler") == (std::string(dtype) == "fp16"));
  }
}

TEST_CASE("a bad step leaves weights, states and step counts as they were") {
  const TempDir dir;
  std::vector<StateDict> states;
  TrainerOptions options = with_large_scale(dir / "run");
  options.precision.initial_loss_scale = std::ldexp(1.0, 30);
  options.loop.max_steps = 8;
  ProbeCallback::Options probe;
  probe.train_batch_end = [&](Trainer& trainer) { states.push_back(bits_of(trainer)); };
  options.callbacks = {use<ProbeCallback>(probe)};
  for (const char* mode : {"eager", "traced"}) {
    CAPTURE(mode);
    states.clear();
    options.model_dir = dir / mode;
    options.backend.mode = mode;
    Trainer trainer(options, quiet_log());
    const StateDict before = bits_of(trainer);
    trainer.fit(train_loader());
    REQUIRE(states.size() == 8);
    for (const StateDict& state : states) {
      CHECK(first_difference(state.at("model").as_dict(), before.at("model").as_dict()) == "");
      CHECK(first_difference(state.at("optimizer/state").as_dict(),
                             before.at("optimizer/state").as_dict()) == "");
    }
    CHECK(states[7].at("grad_scaler/skipped_steps").as_int() == 8);
    CHECK(states[7].at("grad_scaler/scale").as_double() == std::ldexp(1.0, 22));
  }
}

TEST_CASE("what a step that failed found about its gradients is forgotten") {
  const TempDir dir;
  TrainerOptions options = options_in("fp16", dir / "run");
  options.precision.loss_scaling_factor = 64.0;
  options.loop.max_steps = 2;
  Trainer trainer(options, quiet_log());
  for (const NamedTensor& parameter : trainer.state().optimizer->trained()) {
    parameter.second.mutable_grad() = at::full_like(parameter.second.detach(), INFINITY);
  }
  auto& precision = trainer.slot<PrecisionCallback>();
  precision.on_before_optimizer_step(trainer, *trainer.state().model, *trainer.state().optimizer);
  trainer.fit(train_loader());
  CHECK(precision.scaler()->skipped_steps().item<int64_t>() == 0);
}

TEST_CASE("T77: a skipped step still moves schedules and the count of updates") {
  const TempDir dir;
  TrainerOptions options = with_large_scale(dir / "run");
  options.precision.initial_loss_scale = std::ldexp(1.0, 40);
  options.loop.max_steps = 4;
  LinearLR::Options linear;
  linear.initial_learning_rate = 0.4;
  linear.end_learning_rate = 0.0;
  linear.total_iters = 4;
  options.schedulers = {use<LinearLR>(linear)};
  Trainer trainer(options, quiet_log());
  trainer.fit(train_loader());
  CHECK(trainer.state().global_step() == 4);
  CHECK(trainer.slot<PrecisionCallback>().scaler()->skipped_steps().item<int64_t>() == 4);
  CHECK(trainer.state().optimizer->groups()[0]["lr"].item<double>() == doctest::Approx(0.0));
}

TEST_CASE("loss_scale and skipped_steps are logged: the scale of the update, and those so far") {
  const TempDir dir;
  std::vector<MemoryLogger::Entry> entries;
  TrainerOptions options = with_large_scale(dir / "run");
  options.backend.mode = "traced";
  options.loggers = {use<MemoryLogger>({&entries, nullptr})};
  options.logging.log_steps = 1;
  Trainer trainer(options, quiet_log());
  trainer.fit(train_loader());
  const auto scales = values_of(entries, "loss_scale");
  const auto skipped = values_of(entries, "skipped_steps");
  REQUIRE(scales.size() == 12);
  REQUIRE(skipped.size() == 12);
  CHECK(scales[0].second == std::ldexp(1.0, 20));
  CHECK(skipped[0].second == 1.0);
  CHECK(skipped[11].second < 12.0);
  for (size_t i = 1; i < 12; ++i) {
    const bool was_skipped = skipped[i - 1].second > (i == 1 ? 0.0 : skipped[i - 2].second);
    CHECK((scales[i].second == scales[i - 1].second / 2) == was_skipped);
  }
  CHECK(trainer.slot<PrecisionCallback>().scaler()->skipped_steps().item<int64_t>() ==
        static_cast<int64_t>(skipped[11].second));
}

TEST_CASE("a constant loss scale is not logged unless asked, and stays") {
  for (const bool asked : {false, true}) {
    const TempDir dir;
    std::vector<MemoryLogger::Entry> entries;
    TrainerOptions options = with_large_scale(dir / "run");
    options.precision.loss_scaling_factor = 128.0;
    if (asked) {
      options.precision.log_loss_scale = true;
    }
    options.loggers = {use<MemoryLogger>({&entries, nullptr})};
    options.logging.log_steps = 1;
    Trainer trainer(options, quiet_log());
    trainer.fit(train_loader());
    const auto scales = values_of(entries, "loss_scale");
    CHECK(scales.size() == (asked ? 12 : 0));
    CHECK(trainer.slot<PrecisionCallback>().scaler()->scale().item<double>() == 128.0);
  }
}

TEST_CASE("a bad step at the least loss scale ends the run and says so") {
  const TempDir dir;
  TrainerOptions options = with_large_scale(dir / "run");
  options.precision.initial_loss_scale = std::ldexp(1.0, 40);
  options.precision.min_loss_scale = std::ldexp(1.0, 38);
  for (const char* mode : {"eager", "traced"}) {
    CAPTURE(mode);
    options.model_dir = dir / mode;
    options.backend.mode = mode;
    Trainer trainer(options, quiet_log());
    try {
      trainer.fit(train_loader());
      FAIL("no error");
    } catch (const Error&) {
      const std::string message = describe(std::current_exception());
      CHECK(message.find("update 3") != std::string::npos);
      CHECK(message.find("min_loss_scale") != std::string::npos);
    }
  }
}

TEST_CASE("T76, P17: hooks and clipping see unscaled gradients, whatever the scale") {
  const auto gradients = [](double scale) {
    const TempDir dir;
    TrainerOptions options = options_in("fp16", dir / "run");
    options.precision.loss_scaling_factor = scale;
    options.precision.max_gradient_norm = 1e-2;
    options.loop.max_steps = 3;
    StateDict seen;
    const auto note = [&seen](const std::string& when) {
      return [&seen, when](Trainer& trainer, Optimizer& optimizer) {
        int i = 0;
        for (const at::Tensor& grad : optimizer.grads()) {
          seen.set(when + std::to_string(trainer.state().global_step()) + "_" + std::to_string(i++),
                   grad.clone());
        }
      };
    };
    ProbeCallback::Options probe;
    probe.before_optimizer_step = note("before");
    probe.after_optimizer_step = note("after");
    options.callbacks = {use<ProbeCallback>(probe)};
    Trainer trainer(options, quiet_log());
    trainer.fit(train_loader());
    return seen;
  };
  const StateDict small = gradients(64.0);
  CHECK(first_difference(small, gradients(1024.0)) == "");
  double norm = 0.0;
  for (int i = 0; i < 4; ++i) {
    const at::Tensor grad = small.at("after0_" + std::to_string(i)).as_tensor();
    norm += std::pow(grad.norm().item<double>(), 2);
  }
  CHECK(std::sqrt(norm) == doctest::Approx(1e-2).epsilon(1e-3));
}

TEST_CASE("bf16_pure: the model has bfloat16 weights, the optimizer float32 masters of them") {
  const TempDir dir;
  Trainer trainer(options_in("bf16_pure", dir / "run"), quiet_log());
  trainer.fit(train_loader(), {tiny_loader("val", 6)});
  const StateDict saved = bits_of(trainer);
  for (const auto& [name, value] : saved.at("model").as_dict().items()) {
    CAPTURE(name);
    CHECK((value.as_tensor().scalar_type() == at::kBFloat16));
    const at::Tensor master =
        saved.at("optimizer/state").as_dict().at(name).as_dict().at("master").as_tensor();
    CHECK((master.scalar_type() == at::kFloat));
    CHECK(equal_bytes(master.to(at::kBFloat16), value.as_tensor()));
  }
  CHECK(!saved.contains("grad_scaler"));
}

TEST_CASE("bf16_pure: weights that a program sets before the first update are trained") {
  const TempDir dir;
  TrainerOptions options = options_in("bf16_pure", dir / "run");
  options.optimizer = use<Sgd>({0.0});
  options.loop.max_steps = 2;
  Trainer trainer(options, quiet_log());
  {
    const at::NoGradGuard no_grad;
    trainer.state().optimizer->trained()[0].second.fill_(0.25);
  }
  trainer.fit(train_loader());
  CHECK(at::equal(weight_of(trainer), at::full_like(weight_of(trainer), 0.25)));
}

TEST_CASE("bf16_pure: masters follow a model that is loaded without an optimizer's state") {
  const TempDir dir;
  TrainerOptions options = options_in("bf16_pure", dir / "run");
  options.loop.max_steps = 3;
  Trainer first(options, quiet_log());
  first.fit(train_loader());
  StateDict state;
  state.set("model", bits_of(first).at("model"));
  first.call(hooks::on_load_checkpoint, state);
  const std::vector<ParamGroup>& groups = first.state().optimizer->groups();
  for (const Parameter& parameter : groups[0].params) {
    CHECK(equal_bytes(parameter.value, parameter.value.to(at::kBFloat16).to(at::kFloat)));
  }
}

TEST_CASE("listed operators are computed in float32") {
  const auto logits = [](const std::string& dtype, std::vector<std::string> in_float32) {
    const TempDir dir;
    TrainerOptions options = options_in(dtype, dir / "run");
    options.precision.float32_operators = std::move(in_float32);
    options.loop.max_steps = 1;
    at::Tensor found;
    ProbeCallback::Options probe;
    probe.after_forward = [&](Outputs& outputs) { found = outputs["logits"].detach().clone(); };
    options.callbacks = {use<ProbeCallback>(probe)};
    Trainer trainer(options, quiet_log());
    trainer.fit(train_loader());
    return found;
  };
  const at::Tensor exact = logits("fp32", {});
  CHECK(!equal_bytes(logits("bf16", {}).to(at::kFloat), exact));
  CHECK(equal_bytes(logits("bf16", {"linear", "addmm"}), exact));
  TrainerOptions options = options_in("bf16", "");
  options.precision.float32_operators = {"linear"};
  check_alike(options);
}

TEST_CASE("options of a precision are read from a file; T90: a factor that is no number is not") {
  const TempDir dir;
  const std::string init = "trainer.init.precision.";
  const RunConfig run = glyphs_run(dir / "run",
                                   "[784, 10]",
                                   {init + "dtype=fp16",
                                    init + "on_unsupported=emulate",
                                    init + "loss_scaling_factor=64",
                                    init + "min_loss_scale=0.5",
                                    init + "float32_operators=[\"softmax\"]"});
  const PrecisionOptions& precision = run.init.precision;
  CHECK(precision.dtype == "fp16");
  CHECK(precision.on_unsupported == "emulate");
  CHECK(precision.loss_scaling_factor.value_or(0.0) == 64.0);
  CHECK(precision.min_loss_scale == 0.5);
  CHECK((precision.float32_operators == std::vector<std::string>{"softmax"}));
  const RunConfig dynamic =
      glyphs_run(dir / "run", "[784, 10]", {init + "loss_scaling_factor=dynamic"});
  CHECK(!dynamic.init.precision.loss_scaling_factor);
  for (const char* value : {"x", "0", "-2.0", "true"}) {
    CAPTURE(value);
    CHECK_THROWS_AS(glyphs_run(dir / "run", "[784, 10]", {init + "loss_scaling_factor=" + value}),
                    ConfigError);
  }
}

TEST_CASE("options out of range are errors that name the option") {
  const TempDir dir;
  const auto refuses = [&](const char* name, const std::function<void(PrecisionOptions&)>& spoil) {
    TrainerOptions options = options_in("fp16", dir / "run");
    spoil(options.precision);
    try {
      const Trainer trainer(options, quiet_log());
    } catch (const Error&) {
      return describe(std::current_exception()).find(name) != std::string::npos;
    }
    return false;
  };
  CHECK(refuses("on_unsupported", [](auto& o) { o.on_unsupported = "guess"; }));
  CHECK(refuses("loss_scaling_factor", [](auto& o) { o.loss_scaling_factor = 0.0; }));
  CHECK(refuses("initial_loss_scale", [](auto& o) { o.initial_loss_scale = -1.0; }));
  CHECK(refuses("initial_loss_scale", [](auto& o) { o.max_loss_scale = 2.0; }));
  CHECK(refuses("steps_per_increase", [](auto& o) { o.steps_per_increase = 0; }));
  CHECK(refuses("loss_scale_growth", [](auto& o) { o.loss_scale_growth = 1.0; }));
  CHECK(refuses("loss_scale_backoff", [](auto& o) { o.loss_scale_backoff = 1.0; }));
  CHECK(refuses("min_loss_scale", [](auto& o) { o.min_loss_scale = 0.0; }));
  CHECK(refuses("float32_operators", [](auto& o) { o.float32_operators = {"no_such_op"}; }));
}

TEST_CASE("a constant loss scale that skips every update warns once") {
  for (const char* mode : {"eager", "traced"}) {
    CAPTURE(mode);
    const TempDir dir;
    TrainerOptions options = with_large_scale(dir / "run");
    options.backend.mode = mode;
    options.precision.loss_scaling_factor = 1e30;
    std::vector<std::string> lines;
    Trainer trainer(options, quiet_log(&lines));
    trainer.fit(train_loader());
    CHECK(trainer.slot<PrecisionCallback>().scaler()->skipped_steps().item<int64_t>() == 12);
    REQUIRE_FALSE(lines.empty());
    CHECK(lines.back().find("12 of 12 updates skipped") != std::string::npos);
    CHECK(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
            return line.find("5 updates in a row were skipped") != std::string::npos &&
                   line.find("precision.loss_scaling_factor") != std::string::npos;
          }) == 1);
  }
}

TEST_SUITE_END();
