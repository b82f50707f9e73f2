// Formulas of algorithms against numbers by hand.

#include <ATen/TensorOperators.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/where.h>
#include <doctest/doctest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "callbacks/algorithms/algorithms.h"
#include "core/error.h"
#include "data/tensor_dataset.h"
#include "loops/step_context.h"
#include "loops/train_step.h"
#include "models/from_module.h"
#include "optim/sgd.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// What a step saw: the input of the network, and what the loss saw.
struct Seen {
  std::vector<at::Tensor> inputs;
  std::vector<at::Tensor> drawn;  // the inputs, when the loss is due
  std::vector<at::Tensor> targets;
  std::vector<at::Tensor> logits;
};

class Watch final : public EventCallback {
 public:
  struct Options {
    Seen* seen = nullptr;
    std::string input = "image";
  };

  explicit Watch(const Options& options) : options_(options) {}

  void run_event(Event event, Trainer& trainer) override {
    const State& state = trainer.state();
    if (event == Event::BeforeForward) {
      options_.seen->inputs.push_back((*state.batch)[options_.input].clone());
    } else if (event == Event::BeforeLoss) {
      if (const at::Tensor* const input = state.batch->find(options_.input)) {
        options_.seen->drawn.push_back(input->clone());
      }
      options_.seen->targets.push_back((*state.batch)["label"].detach().clone());
      options_.seen->logits.push_back((*state.outputs)["logits"].detach().clone());
    }
  }

 private:
  Options options_;
};

constexpr int64_t kSide = 8;
constexpr int64_t kSamples = 6;
constexpr int64_t kClasses = 3;

struct MeanOfPixels final : torch::nn::Module {
  MeanOfPixels() : linear(register_module("linear", torch::nn::Linear(1, kClasses))) {}

  at::Tensor forward(const at::Tensor& images) { return linear(images.mean({2, 3})); }

  torch::nn::Linear linear;
};

/// The same of the first channel.
struct MeanOfFirst final : torch::nn::Module {
  MeanOfFirst() : pixels(register_module("pixels", std::make_shared<MeanOfPixels>())) {}

  at::Tensor forward(const at::Tensor& images) { return pixels->forward(images.narrow(1, 0, 1)); }

  std::shared_ptr<MeanOfPixels> pixels;
};

/// The factor that makes all of `after` of `before`; nothing when there is none.
std::optional<double> factor_of(const at::Tensor& before, const at::Tensor& after) {
  const auto largest = before.abs().argmax().item<int64_t>();
  const double factor =
      after.flatten()[largest].item<double>() / before.flatten()[largest].item<double>();
  return at::allclose(before * factor, after, 1e-4, 1e-5) ? std::optional(factor) : std::nullopt;
}

at::Tensor images() {
  return at::arange(1, kSamples * kSide * kSide + 1, at::kFloat)
      .reshape({kSamples, 1, kSide, kSide})
      .div(400);
}

at::Tensor labels() {
  return at::arange(kSamples).remainder(kClasses);
}

/// Notes what it is given.
struct NotedPixels final : torch::nn::Module {
  explicit NotedPixels(std::vector<at::Tensor>* seen)
      : inputs(seen), pixels(register_module("pixels", std::make_shared<MeanOfPixels>())) {}

  at::Tensor forward(const at::Tensor& given) {
    inputs->push_back(given.detach().clone());
    return pixels->forward(given);
  }

  std::vector<at::Tensor>* inputs;
  std::shared_ptr<MeanOfPixels> pixels;
};

/// Updates two optimizers with gradients of their own.
class OneAfterTheOther final : public TrainStep {
 public:
  Outputs run(StepContext& step, const Batch& batch) override {
    Outputs first = step.forward(batch);
    step.backward(first, {"weight"});
    step.update("weight");
    Outputs second = step.forward(batch);
    step.backward(second, {"bias"});
    step.update("bias");
    return second;
  }
};

constexpr double kShift = 100.0;

/// A callback that changes the input, as normalisation does.
class ShiftInput final : public Callback {
 public:
  void on_before_forward(Trainer&, Model&, const Batch&, Batch& input) override {
    input.set("image", input["image"] + kShift);
  }
};

DataLoader whole_loader() {
  LoaderOptions loader;
  loader.batch_size = kSamples;
  return DataLoader("train", from_tensors({{"image", images()}, {"label", labels()}}), loader);
}

/// One epoch of a batch each on `seen`, or of several.
Seen seen_with(const Factory<Algorithm>& algorithm, int64_t updates = 1) {
  const TempDir dir;
  Seen seen;
  TrainerOptions options = tiny_options(dir / "run");
  options.model =
      from_module([] { return std::make_shared<MeanOfPixels>(); }, "image", cross_entropy("label"));
  options.algorithms = {algorithm};
  options.callbacks = {use<Watch>({&seen})};
  options.loop.max_steps = updates;
  options.loop.eval_frequency = 0;
  Trainer trainer(options, quiet_log());
  trainer.fit(whole_loader());
  return seen;
}

bool is_near(const at::Tensor& a, const at::Tensor& b) {
  return at::allclose(a, b, 1e-4, 1e-5);
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/algorithms/formulas");

TEST_CASE("C69: smoothed labels are 1 - s + s / classes, and s / classes") {
  LabelSmoothing::Options smoothing;
  smoothing.smoothing = 0.3;
  const Seen seen = seen_with(use<LabelSmoothing>(smoothing));
  REQUIRE(seen.targets.size() == 1);
  const at::Tensor target = seen.targets[0];
  CHECK(target.size(1) == kClasses);
  CHECK(target[0][0].item<double>() == doctest::Approx(0.8));
  CHECK(target[0][1].item<double>() == doctest::Approx(0.1));
  CHECK(target[1][1].item<double>() == doctest::Approx(0.8));
}

TEST_CASE("C69: MixUp mixes by at most a half, samples and labels alike") {
  const Seen seen = seen_with(use<MixUp>({1.0}), 5);
  for (size_t i = 0; i < seen.inputs.size(); ++i) {
    const at::Tensor mixed = seen.inputs[i];
    const at::Tensor target = seen.targets[i];
    CHECK(is_near(target.sum(1), at::ones({kSamples})));
    double share = 0.0;
    for (int64_t row = 0; row < kSamples; ++row) {
      const int64_t own = labels()[row].item<int64_t>();
      const double kept = target[row][own].item<double>();
      CHECK(kept >= 0.5 - 1e-6);
      if (kept < 1.0 - 1e-6) {
        share = 1.0 - kept;
      }
    }
    CHECK(share <= 0.5 + 1e-6);
    // A mixture of samples of one batch keeps the mean of all.
    CHECK(mixed.mean().item<double>() == doctest::Approx(images().mean().item<double>()));
  }
}

TEST_CASE("C69: CutMix weighs labels by the area that is kept") {
  const Seen seen = seen_with(use<CutMix>(), 5);
  bool has_cut = false;
  for (size_t i = 0; i < seen.inputs.size(); ++i) {
    const at::Tensor is_own = seen.inputs[i].eq(images());
    for (int64_t row = 0; row < kSamples; ++row) {
      const double kept = is_own[row].to(at::kDouble).mean().item<double>();
      const double own = seen.targets[i][row][labels()[row].item<int64_t>()].item<double>();
      // One that is mixed with its own class, or with itself, keeps its label.
      const bool is_weighted = std::abs(own - kept) < 1e-5 || std::abs(own - 1.0) < 1e-5;
      CHECK(is_weighted);
      has_cut = has_cut || (kept < 1.0 && std::abs(own - kept) < 1e-5);
    }
  }
  CHECK(has_cut);
}

TEST_CASE("CutOut sets at most a square of the given side to zero, in all pictures alike") {
  CutOut::Options cut;
  cut.length = 0.5;
  const Seen seen = seen_with(use<CutOut>(cut), 5);
  for (const at::Tensor& input : seen.inputs) {
    const at::Tensor is_zero = input.eq(0);
    CHECK(is_zero[0].equal(is_zero[kSamples - 1]));
    const int64_t zeros = is_zero[0].sum().item<int64_t>();
    CHECK(zeros >= 4);  // a quarter of the square, where its centre is in a corner
    CHECK(zeros <= 16);
    CHECK(input.eq(images()).logical_or(is_zero).all().item<bool>());
  }
}

TEST_CASE("ColOut keeps int((1 - p) size) rows and columns, in their order") {
  const Seen seen = seen_with(use<ColOut>({0.25, 0.5}), 3);
  for (const at::Tensor& input : seen.inputs) {
    CHECK(input.sizes() == at::IntArrayRef({kSamples, 1, 6, 4}));
    const at::Tensor first = input[0][0];
    CHECK(first.diff(1, 0).gt(0).all().item<bool>());
    CHECK(first.diff(1, 1).gt(0).all().item<bool>());
  }
}

TEST_CASE("C74: progressive sizes are multiples of the increment, and whole at the end") {
  ProgressiveResizing::Options options;
  options.initial_scale = 0.5;
  options.delay_fraction = 0.5;
  options.finetune_fraction = 0.2;
  options.size_increment = 4;
  const ProgressiveResizing resizing(options);
  CHECK(resizing.side(32, 0.0) == 16);
  CHECK(resizing.side(32, 0.5) == 16);
  CHECK(resizing.side(32, 0.65) == 24);  // half of the way from 16 to 32
  CHECK(resizing.side(32, 0.8) == 32);
  CHECK(resizing.side(32, 1.0) == 32);
  CHECK(resizing.side(30, 1.0) == 30);
  for (double done = 0.0; done < 0.8; done += 0.01) {
    CHECK(resizing.side(32, done) % 4 == 0);
  }
}

TEST_CASE("pictures grow over the run") {
  ProgressiveResizing::Options options;
  options.size_increment = 2;
  for (const char* mode : {"resize", "crop"}) {
    CAPTURE(std::string(mode));
    options.mode = mode;
    const Seen seen = seen_with(use<ProgressiveResizing>(options), 10);
    CHECK(seen.inputs.front().size(3) == 4);
    CHECK(seen.inputs[6].size(3) == 6);  // 0.5 + 0.5 * (0.1 / 0.3) of 8 is 5.3
    CHECK(seen.inputs.back().size(3) == kSide);
  }
}

TEST_CASE("sequence lengths grow by whole steps until the warm-up is over") {
  SeqLengthWarmup::Options options;
  options.duration = 0.5;
  options.min_seq_length = 8;
  options.max_seq_length = 32;
  options.step_size = 8;
  const SeqLengthWarmup warmup(options);
  CHECK(warmup.length(0.0) == 8);
  CHECK(warmup.length(0.16) == 8);
  CHECK(warmup.length(0.17) == 16);
  CHECK(warmup.length(0.34) == 24);
  CHECK(warmup.length(0.5) == 32);
}

TEST_CASE(
    "C75: selective backpropagation keeps a share of samples, in its window, off interrupts") {
  SelectiveBackprop::Options options;
  options.start = 0.2;
  options.end = 0.8;
  options.keep = 0.5;
  options.interrupt = 0;
  const Seen seen = seen_with(use<SelectiveBackprop>(options), 10);
  for (size_t update = 0; update < seen.logits.size(); ++update) {
    const bool is_active = update >= 2 && update < 8;
    CHECK(seen.logits[update].size(0) == (is_active ? kSamples / 2 : kSamples));
  }
  State state;
  state.timestamp.batch_in_epoch = 1;
  CHECK_FALSE(SelectiveBackprop(options).match(Event::BeforeForward, state));  // no fit runs
}

TEST_CASE("C75: selective backpropagation ranks samples as the model sees them") {
  const TempDir dir;
  std::vector<at::Tensor> forwards;
  SelectiveBackprop::Options selective;
  selective.start = 0.0;
  selective.end = 1.0;
  selective.keep = 0.5;
  selective.interrupt = 0;
  TrainerOptions options = tiny_options(dir / "run");
  options.model = from_module(
      [&] { return std::make_shared<NotedPixels>(&forwards); }, "image", cross_entropy("label"));
  options.backend.mode = "eager";
  options.algorithms = {use<SelectiveBackprop>(selective)};
  options.callbacks = {use<ShiftInput>()};
  options.loop.max_steps = 1;
  options.loop.eval_frequency = 0;
  Trainer(options, quiet_log()).fit(whole_loader());
  REQUIRE(forwards.size() == 2);  // that which ranks, and that which trains
  CHECK(forwards[0].size(0) == kSamples);
  CHECK(forwards[1].size(0) == kSamples / 2);
  for (const at::Tensor& input : forwards) {
    CHECK(input.min().item<double>() > kShift);
  }
}

TEST_CASE("selective backpropagation draws the sample of the least loss now and then") {
  SelectiveBackprop::Options options;
  options.start = 0.0;
  options.end = 1.0;
  options.keep = 0.5;
  options.interrupt = 0;
  // Weights are (i + 0.5) / N: the least of six is in 13 % of the draws of three, about 26 of 200.
  const Seen seen = seen_with(use<SelectiveBackprop>(options), 200);
  const at::Tensor all = images().mean({1, 2, 3});
  std::vector<int64_t> times(kSamples);
  REQUIRE(seen.drawn.size() == 200);
  for (const at::Tensor& input : seen.drawn) {
    CHECK(input.size(0) == kSamples / 2);
    for (int64_t row = 0; row < input.size(0); ++row) {
      const auto nearest = (all - input[row].mean()).abs().argmin().item<int64_t>();
      ++times[static_cast<size_t>(nearest)];
    }
  }
  CHECK(std::count(times.begin(), times.end(), 0) == 0);
}

TEST_CASE("C72: freezing reaches all layers but the last") {
  const LayerFreezing freezing({0.5, 1.0});
  CHECK(freezing.depth(5, 0.4) == 0);
  CHECK(freezing.depth(5, 0.5) == 0);
  CHECK(freezing.depth(5, 0.75) == 2);
  CHECK(freezing.depth(5, 1.0) == 4);
  CHECK(freezing.depth(1, 1.0) == 0);
}

TEST_CASE("C73: gradients are clipped before the update") {
  for (const char* type : {"norm", "value", "adaptive"}) {
    CAPTURE(std::string(type));
    const TempDir dir;
    TrainerOptions options = tiny_options(dir / "run");
    options.algorithms = {use<GradientClipping>({type, 1e-3})};
    double largest = 0.0;
    ProbeCallback::Options probe;
    probe.after_optimizer_step = [&](Trainer&, Optimizer& optimizer) {
      for (const at::Tensor& grad : optimizer.grads()) {
        largest = std::max(largest, grad.abs().max().item<double>());
      }
    };
    options.callbacks = {use<ProbeCallback>(probe)};
    options.loop.max_steps = 3;
    Trainer(options, quiet_log()).fit(tiny_loader("train"));
    CHECK(largest > 0.0);
    CHECK(largest <= 1.001e-3);
  }
}

TEST_CASE("each of several optimizers clips its gradients before its own step") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.optimizer = {};
  options.optimizers = {{"weight", {"*weight"}, use<Sgd>({0.1})},
                        {"bias", {"*bias"}, use<Sgd>({0.1})}};
  options.step = use<OneAfterTheOther>();
  options.algorithms = {use<GradientClipping>({"norm", 1e-3})};
  std::vector<std::pair<std::string, double>> norms;
  ProbeCallback::Options probe;
  probe.after_optimizer_step = [&](Trainer&, Optimizer& optimizer) {
    REQUIRE(optimizer.grads().size() == 1);
    norms.emplace_back(optimizer.name(), optimizer.grads()[0].norm().item<double>());
  };
  options.callbacks = {use<ProbeCallback>(probe)};
  options.backend.mode = "eager";
  options.loop.max_steps = 1;
  Trainer(options, quiet_log()).fit(tiny_loader("train"));
  REQUIRE(norms.size() == 2);
  CHECK(norms[0].first == "weight");
  CHECK(norms[1].first == "bias");
  for (const auto& norm : norms) {
    CHECK(norm.second == doctest::Approx(1e-3).epsilon(1e-3));
  }
}

TEST_CASE("C73: clipped gradients are those by hand") {
  for (const char* type : {"norm", "value", "adaptive"}) {
    CAPTURE(std::string(type));
    const TempDir dir;
    TrainerOptions options = tiny_options(dir / "run");
    options.backend.mode = "eager";
    options.algorithms = {use<GradientClipping>({type, 0.05})};
    options.loop.max_steps = 1;
    std::vector<at::Tensor> weights;  // and bias, before the update
    std::vector<at::Tensor> raw;
    std::vector<at::Tensor> clipped;
    ProbeCallback::Options probe;
    probe.after_backward = [&](Trainer& trainer, const Outputs&) {
      for (const NamedTensor& parameter : trainer.state().optimizer->trained()) {
        weights.push_back(parameter.second.detach().clone());
        raw.push_back(parameter.second.grad().clone());
      }
    };
    probe.after_optimizer_step = [&](Trainer&, Optimizer& optimizer) {
      for (const at::Tensor& grad : optimizer.grads()) {
        clipped.push_back(grad.clone());
      }
    };
    options.callbacks = {use<ProbeCallback>(probe)};
    Trainer(options, quiet_log()).fit(tiny_loader("train"));
    REQUIRE(raw.size() == 2);
    REQUIRE(clipped.size() == 2);
    const double norm = std::sqrt((raw[0].pow(2).sum() + raw[1].pow(2).sum()).item<double>());
    CHECK(norm > 0.05);
    for (size_t i = 0; i < raw.size(); ++i) {
      at::Tensor expected = raw[i].clamp(-0.05, 0.05);
      if (std::string(type) == "norm") {
        expected = raw[i] * (0.05 / (norm + 1e-6));
      } else if (std::string(type) == "adaptive") {
        // A unit is a row of the matrix, and all of the vector.
        const at::Tensor units = raw[i].dim() == 2 ? raw[i] : raw[i].unsqueeze(0);
        const at::Tensor of = raw[i].dim() == 2 ? weights[i] : weights[i].unsqueeze(0);
        const at::Tensor most = of.norm(2, {1}, true).clamp_min(1e-3) * 0.05;
        expected = (units * (most / units.norm(2, {1}, true)).clamp_max(1.0)).view_as(raw[i]);
      }
      CHECK(at::allclose(clipped[i], expected, 1e-4, 1e-7));
    }
  }
}

TEST_CASE("without severity RandAugment and AugMix change nothing, with it each picture differs") {
  for (const double severity : {0.0, 8.0}) {
    CAPTURE(severity);
    RandAugment::Options augment;
    augment.severity = severity;
    AugMix::Options mix;
    mix.severity = severity;
    for (const auto& algorithm : {use<RandAugment>(augment), use<AugMix>(mix)}) {
      const Seen seen = seen_with(algorithm);
      CHECK(seen.inputs[0].sizes() == images().sizes());
      CHECK(is_near(seen.inputs[0], images()) == (severity == 0.0));
    }
  }
}

TEST_CASE("RandAugment does to each picture one of its operations, by no more than its severity") {
  RandAugment::Options augment;
  augment.severity = 5.0;
  augment.depth = 1;
  const double most = 0.5 * 0.9;  // of light, contrast and sharpness
  std::map<std::string, int64_t> times;
  for (const at::Tensor& input : seen_with(use<RandAugment>(augment), 60).inputs) {
    for (int64_t row = 0; row < kSamples; ++row) {
      const at::Tensor before = images()[row][0];
      const at::Tensor after = input[row][0];
      const at::Tensor smooth =
          at::avg_pool2d(before.reshape({1, 1, kSide, kSide}), {3, 3}, {1, 1}, {1, 1})[0][0];
      if (is_near(after, before)) {
        ++times["next to nothing"];
      } else if (const auto light = factor_of(before, after)) {
        CHECK(std::abs(*light - 1.0) <= most + 1e-4);
        ++times["light"];
      } else if (const auto contrast = factor_of(before - before.mean(), after - before.mean())) {
        CHECK(std::abs(*contrast - 1.0) <= most + 1e-4);
        ++times["contrast"];
      } else if (const auto sharpness = factor_of(before - smooth, after - before)) {
        CHECK(std::abs(*sharpness) <= most + 1e-4);
        ++times["sharpness"];
      } else if (const at::Tensor is_turned = after.ne(before);
                 is_near(after, at::where(is_turned, 1.0 - before, before))) {
        const double least = before.masked_select(is_turned).min().item<double>();
        CHECK(least > 0.5 - 1e-4);  // what is lighter than 1 - amount
        CHECK(before.masked_select(is_turned.logical_not()).le(least).all().item<bool>());
        ++times["solarized"];
      } else {  // moved: between the pixels that were there, and zeros from outside
        CHECK(after.min().item<double>() >= 0.0);
        CHECK(after.max().item<double>() <= before.max().item<double>() + 1e-4);
        ++times["moved"];
      }
    }
  }
  for (const char* operation : {"light", "contrast", "sharpness", "solarized", "moved"}) {
    CAPTURE(std::string(operation));
    CHECK(times[operation] > 0);
  }
}

TEST_CASE("AugMix of one chain of one operation keeps one share of all pictures of a batch") {
  AugMix::Options mix;
  mix.severity = 5.0;
  mix.depth = 1;
  mix.width = 1;
  const double most = 0.5 * 0.9;
  int64_t lit = 0;
  for (const at::Tensor& input : seen_with(use<AugMix>(mix), 40).inputs) {
    for (int64_t row = 0; row < kSamples; ++row) {
      const at::Tensor before = images()[row][0];
      // kept x + (1 - kept) light x, with light from 1 - most to 1 + most
      if (const auto light = factor_of(before, input[row][0])) {
        CHECK(std::abs(*light - 1.0) <= most + 1e-4);
        ++lit;
      }
      CHECK(input[row].max().item<double>() <= (1.0 + most) * before.max().item<double>() + 1e-4);
    }
  }
  CHECK(lit > 0);
}

TEST_CASE("ChannelsLast changes where values are in memory, and no value") {
  const TempDir dir;
  const at::Tensor pictures = at::arange(4 * 3 * 5 * 6, at::kFloat).reshape({4, 3, 5, 6});
  LoaderOptions loader;
  loader.batch_size = 4;
  Seen seen;
  TrainerOptions options = tiny_options(dir / "run");
  options.model =
      from_module([] { return std::make_shared<MeanOfFirst>(); }, "image", cross_entropy("label"));
  options.algorithms = {use<ChannelsLast>()};
  options.callbacks = {use<Watch>({&seen})};
  options.backend.mode = "eager";
  options.loop.max_steps = 1;
  options.loop.eval_frequency = 0;
  Trainer(options, quiet_log())
      .fit(DataLoader("train",
                      from_tensors({{"image", pictures}, {"label", at::arange(4).remainder(3)}}),
                      loader));
  REQUIRE(seen.inputs.size() == 1);
  CHECK(seen.inputs[0].equal(pictures));
  CHECK(seen.inputs[0].strides() == at::IntArrayRef({90, 1, 18, 3}));
}

TEST_CASE("NoOpModel trains one number by its square in the place of the model") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  options.algorithms = {use<NoOpModel>()};
  Sgd::Options sgd;
  sgd.lr = 0.25;
  options.optimizer = use<Sgd>(sgd);
  options.loop.max_steps = 2;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  const auto parameters = trainer.state().model->module().named_parameters();
  REQUIRE(parameters.size() == 1);
  // w - 0.25 · 2 w halves it.
  CHECK(parameters["weight"].item<double>() == doctest::Approx(1.5 / 4));
}

TEST_CASE("options out of their range are refused") {
  CHECK_THROWS_AS(MixUp({0.0}), UsageError);
  CHECK_THROWS_AS(CutMix({-1.0}), UsageError);
  CHECK_THROWS_AS(LabelSmoothing({1.5}), UsageError);
  CHECK_THROWS_AS(CutOut({0}), UsageError);
  CHECK_THROWS_AS(ColOut({1.0}), UsageError);
  CHECK_THROWS_AS(LayerFreezing({1.0}), UsageError);
  CHECK_THROWS_AS(GradientClipping({"nonsense", 1.0}), UsageError);
  CHECK_THROWS_AS(SelectiveBackprop({0.9, 0.5}), UsageError);
  CHECK_THROWS_AS(GyroDropout({0.5, 4, 5}), UsageError);
  CHECK_THROWS_AS(StochasticDepth({{"*"}, "batch"}), UsageError);
}

TEST_SUITE_END();
