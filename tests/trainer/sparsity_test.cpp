#include <doctest/doctest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "callbacks/builtin/log_sparsity.h"
#include "callbacks/core/sparsity_callback.h"
#include "checkpoint/checkpoint_file.h"
#include "configs/toml_file.h"
#include "core/error.h"
#include "models/builtin/mlp.h"
#include "optim/adam.h"
#include "sparsity/algorithms.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/registries.h"
#include "trainer/run_config.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr int64_t kSparseUpdates = 24;

/// An algorithm of a user's own, as docs/extending.md has it.
class TwoOfFour final : public SparsityAlgorithm {
 public:
  at::Tensor next_mask(const MaskedWeights& weights) override {
    const at::Tensor fours = weights.weight.abs().flatten().view({-1, 4});
    const at::Tensor rank = fours.argsort(1, /*descending=*/true).argsort();
    return rank.lt(2).view(weights.weight.sizes());
  }
};

/// RigL, which notes the largest gradient of a pruned weight whenever masks change, and checks that
/// the weights that grow have larger ones than those that do not.
class WatchedRigL final : public SparsityAlgorithm {
 public:
  struct Options {
    std::vector<double>* largest = nullptr;
  };

  explicit WatchedRigL(const Options& options) : options_(options), rigl_({}) {}

  at::Tensor next_mask(const MaskedWeights& weights) override {
    const at::Tensor pruned = weights.gradient.masked_select(weights.mask.logical_not());
    options_.largest->push_back(pruned.abs().max().item<double>());
    const at::Tensor mask = rigl_.next_mask(weights);
    const at::Tensor grown = mask.logical_and(weights.mask.logical_not());
    const at::Tensor left = mask.logical_or(weights.mask).logical_not();
    if (grown.any().item<bool>()) {
      CHECK(weights.gradient.abs().masked_select(grown).min().item<double>() >=
            weights.gradient.abs().masked_select(left).max().item<double>());
    }
    return mask;
  }

  bool needs_gradient() const override { return true; }

 private:
  Options options_;
  RigL rigl_;
};

/// Whether pruned weights and what the optimizer keeps for them are zero, after each update, and
/// whether as many are as the schedule asks for.
class Watch final : public Callback {
 public:
  struct Options {
    int64_t* seen = nullptr;
  };

  explicit Watch(const Options& options) : options_(options) {}

  void on_train_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) override {
    if (!trainer.state().position.is_last) {
      return;
    }
    const SparsityCallback& sparsity = trainer.slot<SparsityCallback>();
    for (const MaskGroup& group : sparsity.masks()->groups()) {
      for (const Mask& mask : group.masks()) {
        check(trainer, sparsity, group, mask);
        ++*options_.seen;
      }
    }
  }

 private:
  static void check(Trainer& trainer,
                    const SparsityCallback& sparsity,
                    const MaskGroup& group,
                    const Mask& mask) {
    const at::Tensor pruned = mask.kept().logical_not();
    const auto elements = static_cast<double>(pruned.numel());
    const double wanted = sparsity.target(group, trainer.state().timestamp) * elements;
    CAPTURE(trainer.state().global_step());
    CHECK(std::abs(pruned.sum().item<double>() - wanted) <= 1.0);
    CHECK(mask.weight().detach().masked_select(pruned).eq(0).all().item<bool>());
    for (const ParamGroup& params : trainer.state().optimizer->groups()) {
      for (const Parameter& parameter : params.params) {
        if (parameter.name == mask.name()) {
          for (const NamedTensor& state : parameter.states()) {
            CHECK((state.second.dim() == 0 ||
                   state.second.masked_select(pruned).eq(0).all().item<bool>()));
          }
        }
      }
    }
  }

  Options options_;
};

TrainerOptions options_of(const std::filesystem::path& dir,
                          const std::string& mode,
                          const SparsityOptions& sparsity) {
  TrainerOptions options = tiny_options(dir);
  Mlp::Options model;
  model.sizes = {4, 12, 8, 3};
  model.input = "x";
  model.dropout = 0.2;
  options.model = use<Mlp>(model);
  options.optimizer = use<AdamW>({2e-2});
  options.backend.mode = mode;
  options.sparsity = sparsity;
  options.loop.max_steps = kSparseUpdates;
  options.loop.eval_frequency = 0;
  options.checkpoint.steps = 11;
  return options;
}

SparsityOptions sparsity_of(const Factory<SparsityAlgorithm>& algorithm) {
  SparsityOptions sparsity;
  sparsity.algorithm = algorithm;
  sparsity.sparsity = {0.25, 0.75, "polynomial"};
  sparsity.update = {2, 2, 20};
  return sparsity;
}

/// What the file of a checkpoint has that two equal runs have in equal bytes.
StateDict bits_in(const std::filesystem::path& path) {
  const StateDict all = read_checkpoint(path);
  StateDict bits;
  for (const char* section : {"model", "optimizer", "sparsity", "rng"}) {
    bits.set(section, all.at(section));
  }
  return bits;
}

StateDict fit(const TrainerOptions& options, const LoadFrom& from = {}) {
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train", 24, 2), {}, from);
  return bits_in(options.model_dir / "checkpoint_24.pt");
}

std::vector<Factory<SparsityAlgorithm>> algorithms() {
  Registries registries;
  register_builtins(registries);
  std::vector<Factory<SparsityAlgorithm>> found;
  for (const auto& entry : registries.sparsity_algorithms.entries()) {
    std::vector<Fault> faults;
    FaultSink sink("", faults);
    if (entry.name != "Static") {
      found.push_back(registries.sparsity_algorithms.read_named(entry.name, {}, {}, sink));
    }
  }
  return found;
}

}  // namespace

TEST_SUITE_BEGIN("trainer/sparsity");

TEST_CASE("traced equals eager, and a resumed run the whole one, for each algorithm") {
  for (const Factory<SparsityAlgorithm>& algorithm : algorithms()) {
    for (const std::string distribution : {"balanced", "global"}) {
      for (const int64_t accumulated : {int64_t{1}, int64_t{2}}) {
        CAPTURE(algorithm.name() + " " + distribution + " " + std::to_string(accumulated));
        const TempDir dir;
        SparsityOptions sparsity = sparsity_of(algorithm);
        sparsity.distribution = distribution;
        const auto options_in = [&](const char* name, const std::string& mode) {
          TrainerOptions options = options_of(dir / name, mode, sparsity);
          options.loop.grad_accum_steps = accumulated;
          return options;
        };
        const StateDict eager = fit(options_in("eager", "eager"));
        CHECK(first_difference(eager, fit(options_in("traced", "traced"))) == "");
        const StateDict resumed =
            fit(options_in("resumed", "traced"), dir / "traced/checkpoint_11.pt");
        CHECK(first_difference(eager, resumed) == "");
      }
    }
  }
}

TEST_CASE("masks change in a step of their own, which is replayed, and in no other") {
  const TempDir dir;
  Trainer trainer(options_of(dir / "run", "traced", sparsity_of(use<RigL>())), quiet_log());
  trainer.fit(tiny_loader("train", 24, 2));
  int64_t changing = 0;
  for (const StepReport& report : trainer.state().backend->reports()) {
    const bool sorts = report.program.find("sort") != std::string::npos;
    CHECK(report.mode == "traced");
    CHECK(report.stats.replays > 0);
    CHECK(sorts == (report.name.rfind("train_masks0_update", 0) == 0));
    changing += sorts ? 1 : 0;
  }
  CHECK(changing == 1);
}

TEST_CASE("at every update pruned weights and their states are zero, as many as scheduled") {
  const std::vector<std::pair<std::string, std::string>> cases = {{"linear", "fp32"},
                                                                  {"cosine", "fp32"},
                                                                  {"polynomial", "fp32"},
                                                                  {"constant", "fp32"},
                                                                  {"polynomial", "bf16_pure"}};
  for (const Factory<SparsityAlgorithm>& algorithm : algorithms()) {
    for (const auto& [form, dtype] : cases) {
      CAPTURE(algorithm.name() + " " + form + " " + dtype);
      const TempDir dir;
      SparsityOptions sparsity = sparsity_of(algorithm);
      sparsity.sparsity =
          form == "constant" ? SparsitySchedule(0.5) : SparsitySchedule(0.25, 0.75, form);
      sparsity.update = {1, 0, 20};
      TrainerOptions options = options_of(dir / "run", "traced", sparsity);
      options.precision.dtype = dtype;
      options.precision.on_unsupported = "emulate";
      int64_t seen = 0;
      options.callbacks = {use<Watch>({&seen})};
      fit(options);
      CHECK(seen == 3 * kSparseUpdates);
    }
  }
}

TEST_CASE("masters in float32 grow where gradients are largest, as float32 weights do") {
  for (const std::string dtype : {"fp32", "bf16_pure"}) {
    CAPTURE(dtype);
    const TempDir dir;
    std::vector<double> largest;
    SparsityOptions sparsity = sparsity_of(use<WatchedRigL>({&largest}));
    sparsity.sparsity = SparsitySchedule(0.5);
    TrainerOptions options = options_of(dir / "run", "eager", sparsity);
    options.precision.dtype = dtype;
    options.precision.on_unsupported = "emulate";
    fit(options);
    CHECK(largest.size() == 3 * 9);
    CHECK(std::all_of(largest.begin(), largest.end(), [](double of) { return of > 0.0; }));
  }
}

TEST_CASE("under bf16_pure traced equals eager, and a resumed run the whole one") {
  const TempDir dir;
  const auto options_in = [&](const char* name, const std::string& mode) {
    TrainerOptions options = options_of(dir / name, mode, sparsity_of(use<RigL>()));
    options.precision.dtype = "bf16_pure";
    options.precision.on_unsupported = "emulate";
    return options;
  };
  const StateDict eager = fit(options_in("eager", "eager"));
  CHECK(first_difference(eager, fit(options_in("traced", "traced"))) == "");
  const StateDict resumed = fit(options_in("resumed", "traced"), dir / "traced/checkpoint_11.pt");
  CHECK(first_difference(eager, resumed) == "");
}

TEST_CASE("what is pruned has no share in the norm of gradients, by which they are clipped") {
  std::string dtype = "fp32";
  SUBCASE("fp32") {}
  SUBCASE("bf16_pure") {
    dtype = "bf16_pure";
  }
  const TempDir dir;
  int64_t seen = 0;
  ProbeCallback::Options probe;
  probe.after_optimizer_step = [&](Trainer& trainer, Optimizer& optimizer) {
    for (const MaskGroup& group : trainer.slot<SparsityCallback>().masks()->groups()) {
      for (const Mask& mask : group.masks()) {
        const at::Tensor pruned = mask.kept().logical_not();
        CHECK(mask.updated().grad().masked_select(pruned).eq(0).all().item<bool>());
      }
    }
    double squares = 0.0;
    for (const at::Tensor& grad : optimizer.grads()) {
      squares += grad.square().sum().item<double>();
    }
    CHECK(std::sqrt(squares) == doctest::Approx(1e-3).epsilon(1e-3));
    ++seen;
  };
  TrainerOptions options = options_of(dir / "run", "eager", sparsity_of(use<StaticSparsity>()));
  options.sparsity.sparsity = SparsitySchedule(0.5);
  options.callbacks = {use<ProbeCallback>(probe)};
  options.precision.max_gradient_norm = 1e-3;
  options.precision.dtype = dtype;
  options.precision.on_unsupported = "emulate";
  fit(options);
  CHECK(seen == kSparseUpdates);
}

TEST_CASE("an algorithm of a user's own is registered, traced and saved like rondo's") {
  Registries registries;
  register_builtins(registries);
  registries.sparsity_algorithms.add<TwoOfFour>("TwoOfFour", "Two of four neighbours are kept.");
  const TempDir dir;
  std::vector<StateDict> runs;
  for (const std::string mode : {"eager", "traced"}) {
    RunConfig run = read_run_config(
        parse_toml("[trainer.init]\nmodel_dir = \"" + (dir / mode.c_str()).string() +
                       "\"\nseed = 1\n"
                       "model = { name = \"Mlp\", sizes = [4, 8, 4], input = \"x\" }\n"
                       "optimizer = { AdamW = {} }\nloop = { max_steps = 24 }\n"
                       "backend = { mode = \"" +
                       mode +
                       "\", on_refusal = \"error\" }\n"
                       "sparsity = { sparsity = 0.5, algorithm = \"twooffour\", "
                       "update = { every = 3 } }\n"
                       "[trainer.fit]\ntrain_dataloader = { dataset = \"Glyphs\" }\n",
                   "run.toml"),
        registries);
    run.init.loggers.clear();
    runs.push_back(fit(run.init));
  }
  CHECK(first_difference(runs[0], runs[1]) == "");
  const at::Tensor mask = runs[0].at("sparsity/masks").as_dict().at("layer0.weight").as_tensor();
  CHECK(mask.view({-1, 4}).sum(1).eq(2).all().item<bool>());
}

TEST_CASE("a share, a table, an alias and a list of groups are read, and written as they were") {
  Registries registries;
  register_builtins(registries);
  const auto read = [&](const std::string& line) {
    return read_run_config(parse_toml("[trainer.init]\nmodel_dir = \"x\"\n" + line +
                                          "\nmodel = { name = \"Mlp\", sizes = [4, 3] }\n",
                                      "run.toml"),
                           registries)
        .init;
  };
  CHECK(read("sparsity = 0.5").sparsity.sparsity.at(0.3) == 0.5);
  CHECK(read("sparsity = { schedule = 0.25 }").sparsity.sparsity.to == 0.25);
  const TrainerOptions table = read(
      "sparsity = { sparsity = { from = 0.1, to = 0.9, form = \"linear\" }, init = \"random\", "
      "distribution = \"global\", algorithm = { RigL = { drop_fraction = 0.1 } }, "
      "update = { every = 10, start = \"1ep\", stop = 0.5 } }");
  CHECK(table.sparsity.sparsity.at(0.5) == doctest::Approx(0.5));
  CHECK(table.sparsity.algorithm.name() == "RigL");
  CHECK(table.sparsity.update.start == Time("1ep"));
  const TrainerOptions list = read(
      "sparsity = [{ sparsity = 0.5, params = [\"a\"] }, { schedule = 0.75, "
      "algorithm = \"set\" }]");
  REQUIRE(list.sparsity.groups.size() == 2);
  CHECK(list.sparsity.groups[1].sparsity.to == 0.75);
  CHECK(list.sparsity.groups[1].algorithm.name() == "SET");
  for (const TrainerOptions& options : {table, list}) {
    CHECK(read_run_config(parse_toml(options.config_text, "again.toml"), registries)
              .init.config_text == options.config_text);
  }
  for (const char* wrong : {"sparsity = 1.0",
                            "sparsity = \"half\"",
                            "sparsity = { sparsity = 0.5, schedule = 0.5 }",
                            "sparsity = { sparsity = { from = 0.5 } }",
                            "sparsity = { algorithm = \"RigLL\" }",
                            "sparsity = { share = 0.5 }",
                            "sparsity = [0.5]"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(read(wrong), ConfigError);
  }
}

TEST_CASE("LogSparsity logs target and actual of each parameter and in total") {
  const TempDir dir;
  TrainerOptions options = options_of(dir / "run", "traced", sparsity_of(use<RigL>()));
  options.callbacks = {use<LogSparsity>()};
  options.logging.log_steps = 4;
  std::vector<MemoryLogger::Entry> entries;
  options.loggers = {use<MemoryLogger>({&entries, nullptr})};
  fit(options);
  const auto actual = values_of(entries, "sparsity/layer1.weight/actual");
  const auto target = values_of(entries, "sparsity/layer1.weight/target");
  const auto total = values_of(entries, "sparsity/total/actual");
  REQUIRE(actual.size() == 6);
  REQUIRE(target.size() == 6);
  CHECK(total.size() == 6);
  for (size_t i = 0; i < actual.size(); ++i) {
    CHECK(std::abs(actual[i].second - target[i].second) <= 1.0 / 96);
  }
  CHECK(target.front().second < 0.75);
  CHECK(actual.back().second == 0.75);
  entries.clear();
  options.sparsity = {};
  options.model_dir = dir / "dense";
  Trainer(options, quiet_log()).fit(tiny_loader("train", 24, 2));
  CHECK(values_of(entries, "sparsity/total/actual").empty());
}

TEST_CASE("a checkpoint without masks is an error; its weights alone are pruned by magnitude") {
  const TempDir dir;
  TrainerOptions dense = options_of(dir / "dense", "traced", {});
  {
    Trainer trainer(dense, quiet_log());
    trainer.fit(tiny_loader("train", 24, 2));
  }
  const std::filesystem::path file = dir / "dense/checkpoint_24.pt";
  TrainerOptions sparse = options_of(dir / "sparse", "traced", {0.5});
  sparse.loop.max_steps = 48;
  Trainer refusing(sparse, quiet_log());
  CHECK_THROWS_AS(refusing.load_checkpoint(file), HookError);
  sparse.checkpoint.disable_strict_checkpoint_loading = true;
  Trainer tolerant(sparse, quiet_log());
  tolerant.load_checkpoint(file);
  const at::Tensor weight = read_checkpoint(file).at("model/layer1.weight").as_tensor();
  const at::Tensor pruned =
      tolerant.slot<SparsityCallback>().masks()->groups()[0].masks()[1].kept().logical_not();
  CHECK(pruned.sum().item<int64_t>() == 48);
  CHECK(weight.abs().masked_select(pruned).max().item<float>() <=
        weight.abs().masked_select(pruned.logical_not()).min().item<float>());
}

TEST_CASE("a window that ends before it begins is an error") {
  const TempDir dir;
  SparsityOptions sparsity = sparsity_of(use<RigL>());
  sparsity.update = {2, 20, 10};
  Trainer trainer(options_of(dir / "run", "eager", sparsity), quiet_log());
  CHECK_THROWS_AS(trainer.fit(tiny_loader("train", 24, 2)), HookError);
}

TEST_CASE("each of several optimizers masks its own weights, under bf16_pure too") {
  for (const std::string dtype : {"fp32", "bf16_pure"}) {
    CAPTURE(dtype);
    const TempDir dir;
    TrainerOptions options = options_of(dir / "run", "traced", {0.5});
    options.optimizer = {};
    options.optimizers = {{"first", {"layer0.*"}, use<AdamW>({2e-2})},
                          {"others", {"layer1.*", "layer2.*"}, use<AdamW>({1e-2})}};
    options.precision.dtype = dtype;
    options.precision.on_unsupported = "emulate";
    Trainer trainer(options, quiet_log());
    trainer.fit(tiny_loader("train", 24, 2));
    const auto& groups = trainer.slot<SparsityCallback>().masks()->groups();
    REQUIRE(groups.size() == 2);
    CHECK(groups[0].owner() == trainer.state().optimizers[0].get());
    CHECK(groups[1].owner() == trainer.state().optimizers[1].get());
    for (const MaskGroup& group : groups) {
      for (const Mask& mask : group.masks()) {
        const at::Tensor pruned = mask.kept().logical_not();
        CHECK((mask.updated().scalar_type() == at::kFloat));
        CHECK(mask.updated().detach().masked_select(pruned).eq(0).all().item<bool>());
      }
    }
  }
}

TEST_SUITE_END();
