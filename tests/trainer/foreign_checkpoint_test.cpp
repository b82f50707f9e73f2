// Runs that begin with a file of another program.

#include <doctest/doctest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/serialize.h>
#include <torch/types.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_file.h"
#include "checkpoint/safetensors_file.h"
#include "core/error.h"
#include "support/contains.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("trainer/foreign_checkpoint");

namespace {

/// Weights that no run begins with.
StateDict weights(const std::string& prefix = "") {
  return {{prefix + "0.weight", torch::arange(12, torch::kFloat32).view({3, 4}) / 12},
          {prefix + "0.bias", torch::tensor({0.5F, 0.25F, 0.125F})}};
}

/// What torch.optim saves, with numbers that no run begins with.
StateDict optimizer_state() {
  return {{"state", StateDict{{"0", StateDict{{"momentum_buffer", torch::ones({3, 4})}}}}},
          {"param_groups", StateList{StateDict{{"lr", 7.0}}}}};
}

void write(const fs::path& path, const StateDict& state) {
  write_checkpoint(*real_file_system(), path, state);
}

TrainerOptions beginning_with(const TempDir& dir, const char* name) {
  TrainerOptions options = tiny_options(dir / "run");
  options.checkpoint.load.path = dir / name;
  return options;
}

/// The message of the error that ends a load; "" when it ends well, after checking that the weights
/// are those above, and nothing else was taken from the file.
std::string load(const TrainerOptions& options, std::vector<std::string>* lines = nullptr) {
  Trainer fresh(options, quiet_log());
  Trainer trainer(options, quiet_log(lines));
  try {
    trainer.load_checkpoint({});
  } catch (const Error&) {
    return describe(std::current_exception());
  }
  const StateDict now = bits_of(trainer);
  const StateDict before = bits_of(fresh);
  CHECK(first_difference(now.at("model").as_dict(), weights()).empty());
  CHECK(first_difference(now.at("optimizer").as_dict(), before.at("optimizer").as_dict()).empty());
  CHECK(trainer.state().global_step() == 0);
  CHECK(trainer.state().timestamp.epoch == 0);
  return "";
}

}  // namespace

TEST_CASE("a wrapped state_dict is loaded; counters and optimizer of its program are not") {
  for (const char* key : {"model_state_dict", "state_dict", "model"}) {
    for (const char* prefix : {"", "module.", "_orig_mod.", "_orig_mod.module."}) {
      CAPTURE(key);
      CAPTURE(prefix);
      const TempDir dir;
      write(dir / "wrapped.pt",
            {{"epoch", 5},
             {"global_step", 100},
             {"timestamp", StateDict{{"update", 100}}},
             {key, weights(prefix)},
             {"optimizer", optimizer_state()},
             {"optimizer_state_dict", optimizer_state()},
             {"loss", 0.5}});
      CHECK(load(beginning_with(dir, "wrapped.pt")) == "");
    }
  }
}

TEST_CASE("a file like Lightning's trains from its weights, not from its step") {
  const TempDir dir;
  StateDict modules = weights("model.");
  modules.set("criterion.weight", torch::ones({3}));
  write(dir / "last.ckpt",
        {{"epoch", 5},
         {"global_step", 100},
         {"pytorch-lightning_version", "2.1.0"},
         {"state_dict", modules},
         {"loops", StateDict{{"fit_loop", StateDict{{"state_dict", StateDict{}}}}}},
         {"callbacks", StateDict{{"ModelCheckpoint", StateDict{{"best", torch::ones({})}}}}},
         {"optimizer_states", StateList{optimizer_state()}},
         {"lr_schedulers", StateList{}},
         {"hyper_parameters", StateDict{{"lr", 0.1}}}});
  TrainerOptions options = beginning_with(dir, "last.ckpt");
  CHECK(load(options) == "");
  options.loop.max_steps = 3;
  Trainer trainer(options, quiet_log());
  const FitResult result = trainer.fit(tiny_loader("train"));
  CHECK(result.steps_now == 3);
  CHECK_FALSE(result.was_already_done);
}

TEST_CASE("names are renamed inside of a wrapping, with what wrappers put before them or without") {
  for (const char* from : {"module.body.*", "body.*"}) {
    CAPTURE(from);
    const TempDir dir;
    write(dir / "wrapped.pt", {{"epoch", 5}, {"state_dict", weights("module.body.")}});
    TrainerOptions options = beginning_with(dir, "wrapped.pt");
    options.checkpoint.load.rename = {{from, "*"}};
    std::vector<std::string> lines;
    CHECK(load(options, &lines) == "");
    CHECK(lines.empty());
  }
}

TEST_CASE("parts can be left out of a wrapping") {
  const TempDir dir;
  StateDict more = weights("model.");
  more.set("model.0.bias", torch::zeros({7}));
  write(dir / "wrapped.pt", {{"state_dict", more}});
  TrainerOptions options = beginning_with(dir, "wrapped.pt");
  CHECK(contains(load(options), "0.bias"));
  options.checkpoint.load.ignore = {"model/*.bias"};
  Trainer trainer(options, quiet_log());
  trainer.load_checkpoint({});
  CHECK(equal_bytes(bits_of(trainer).at("model/0.weight").as_tensor(),
                    weights().at("0.weight").as_tensor()));
}

TEST_CASE("where a file holds several networks, the error says how to choose, and that works") {
  const TempDir dir;
  write(dir / "gan.pt", {{"generator", weights()}, {"critic", StateDict{{"w", torch::ones({1})}}}});
  TrainerOptions options = beginning_with(dir, "gan.pt");
  const std::string error = load(options);
  CHECK(contains(error, "gan.pt"));
  CHECK(contains(error, "checkpoint.load.key = \"generator\""));
  options.checkpoint.load.key = "generator";
  CHECK(load(options) == "");
}

TEST_CASE("nothing that would be loaded into the model is an error of a fit") {
  const TempDir dir;
  write(dir / "other.pt", {{"state_dict", StateDict{{"conv.weight", torch::ones({1})}}}});
  write(dir / "none.pt", {{"epoch", 5}, {"optimizer", optimizer_state()}});
  for (const bool lenient : {false, true}) {
    TrainerOptions options = beginning_with(dir, "other.pt");
    options.checkpoint.disable_strict_checkpoint_loading = lenient;
    const std::string error = load(options);
    CHECK(contains(error, "conv.weight"));
    CHECK(contains(error, "0.weight"));
    options.checkpoint.load.path = dir / "none.pt";
    CHECK(contains(load(options), "epoch, optimizer"));
  }
  Trainer trainer(beginning_with(dir, "other.pt"), quiet_log());
  CHECK_THROWS_AS(trainer.fit(tiny_loader("train")), CheckpointError);
}

TEST_CASE("safetensors begin a run, and can be named as a checkpoint") {
  const TempDir dir;
  write_safetensors(*real_file_system(), dir / "plain.safetensors", weights());
  write_safetensors(*real_file_system(), dir / "prefixed", weights("transformer."));
  CHECK(load(beginning_with(dir, "plain.safetensors")) == "");
  CHECK(load(beginning_with(dir, "prefixed")) == "");  // known by its content
  Trainer trainer(tiny_options(dir / "run"), quiet_log());
  CHECK_NOTHROW(trainer.validate(tiny_loader("val"), dir / "plain.safetensors"));
  CHECK(first_difference(bits_of(trainer).at("model").as_dict(), weights()).empty());
}

TEST_CASE("what C++ saved with torch::save begins a run") {
  const TempDir dir;
  torch::nn::Sequential module(torch::nn::Linear(4, 3));
  {
    const at::NoGradGuard no_grad;
    for (auto& parameter : module->named_parameters()) {
      parameter.value().copy_(weights().at(parameter.key()).as_tensor());
    }
  }
  torch::save(module, (dir / "module.pt").string());
  CHECK(load(beginning_with(dir, "module.pt")) == "");
}

TEST_CASE("validate_all takes such files by the number in their name") {
  const TempDir dir;
  write(dir / "checkpoint_20.pt", {{"global_step", 100}, {"state_dict", weights()}});
  Trainer trainer(tiny_options(dir / "run"), quiet_log());
  const ValidationTable table =
      trainer.validate_all({tiny_loader("val")}, {(dir / "checkpoint_*.pt").string()});
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].step == 20);
}

TEST_SUITE_END();
