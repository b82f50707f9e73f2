#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <torch/types.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "callbacks/builtin/early_stopper.h"
#include "callbacks/builtin/keep_n_checkpoints.h"
#include "callbacks/builtin/save_checkpoint_state.h"
#include "callbacks/callback_states.h"
#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "models/builtin/mlp.h"
#include "optim/adam.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "support/with_threads.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("trainer/checkpoint_load");

namespace {

/// A run with every section that a checkpoint can have.
TrainerOptions whole_options(const fs::path& model_dir) {
  TrainerOptions options = tiny_options(model_dir);
  options.optimizer = use<Adam>({1e-2});
  options.sparsity.sparsity = 0.5;
  options.loop.max_steps = 6;
  options.checkpoint.steps = 2;
  options.callbacks = {use<KeepNCheckpoints>({100})};
  return options;
}

/// Trains a whole run; its checkpoints are at 2, 4 and 6.
StateDict train_whole_run(const TrainerOptions& options) {
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  return bits_of(trainer);
}

void damage(const fs::path& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto middle = static_cast<std::streamoff>(fs::file_size(path) / 2);
  file.seekg(middle);
  const char byte = static_cast<char>(file.get());
  file.seekp(middle);
  file.put(static_cast<char>(byte ^ 1));
}

bool mentions(const std::vector<std::string>& lines, const std::string& text) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.find(text) != std::string::npos;
  });
}

std::string load_error(Trainer& trainer, const LoadFrom& from) {
  try {
    trainer.load_checkpoint(from);
  } catch (const Error&) {
    return describe(std::current_exception());
  }
  return "";
}

struct Edit {
  const char* what;
  std::function<void(StateDict&)> apply;
};

StateDict& dict(StateDict& state, const char* path) {
  return state.find(path)->as_dict();
}

const Edit kEdits[] = {
    {"weight",
     [](StateDict& s) {
       dict(s, "model").set("0.weight", torch::zeros({3, 5}));
     }},
    {"imaginary",
     [](StateDict& s) {
       dict(s, "model").set("0.weight", torch::zeros({3, 4}, torch::kComplexFloat));
     }},
    {"bias", [](StateDict& s) { dict(s, "model").erase("0.bias"); }},
    {"text", [](StateDict& s) { dict(s, "model").set("0.bias", "text"); }},
    {"0.bias", [](StateDict& s) { dict(s, "optimizer/state").erase("0.bias"); }},
    {"groups", [](StateDict& s) { dict(s, "optimizer").set("groups", StateList{}); }},
    {"random", [](StateDict& s) { dict(s, "rng").set("cpu", torch::zeros({3})); }},
    {"seed", [](StateDict& s) { dict(s, "rng").erase("seed"); }},
    {"integer", [](StateDict& s) { dict(s, "timestamp").set("update", "six"); }},
    {"epoch", [](StateDict& s) { dict(s, "dataloader").erase("epoch"); }},
    {"list", [](StateDict& s) { s.set("schedulers", "two"); }},
    {"sparsity", [](StateDict& s) { dict(s, "sparsity").set("masks", StateDict{}); }},
    {"KeepNCheckpoints",
     [](StateDict& s) { dict(s, "callbacks/KeepNCheckpoints").erase("saved"); }},
    {"version", [](StateDict& s) { dict(s, "__metadata__").set("version", "99.1.0"); }}};

}  // namespace

TEST_CASE("a load that fails in any part changes nothing, and says which part") {
  const TempDir dir;
  train_whole_run(whole_options(dir / "run"));
  for (const Edit& edit : kEdits) {
    CAPTURE(edit.what);
    StateDict state = read_checkpoint(dir / "run/checkpoint_4.pt");
    edit.apply(state);
    write_checkpoint(*real_file_system(), dir / "edited.pt", state);
    Trainer trainer(whole_options(dir / "other"), quiet_log());
    const StateDict before = bits_of(trainer);
    const std::string error = load_error(trainer, dir / "edited.pt");
    CHECK(error.find(edit.what) != std::string::npos);
    CHECK(first_difference(before, bits_of(trainer)).empty());
  }
}

TEST_CASE("a callback that had taken its state gives it back when another one refuses") {
  const TempDir dir;
  const auto options_in = [&](const char* name) {
    TrainerOptions options = whole_options(dir / name);
    EarlyStopper::Options stopper;
    stopper.metric = "val/loss";
    options.callbacks = {use<EarlyStopper>(stopper),
                         use<SaveCheckpointState>(SaveCheckpointState::Options{}),
                         use<KeepNCheckpoints>({100})};
    options.loop.eval_frequency = 2;
    return options;
  };
  Trainer(options_in("run"), quiet_log()).fit(tiny_loader("train"), {tiny_loader("val")});
  StateDict state = read_checkpoint(dir / "run/checkpoint_4.pt");
  dict(state, "callbacks/KeepNCheckpoints").erase("saved");
  write_checkpoint(*real_file_system(), dir / "edited.pt", state);
  SUBCASE("by one that had none") {
    Trainer trainer(options_in("other"), quiet_log());
    const StateDict before = callback_states(trainer);
    CHECK_FALSE(before.contains("EarlyStopper"));
    CHECK_FALSE(load_error(trainer, dir / "edited.pt").empty());
    CHECK(first_difference(before, callback_states(trainer)).empty());
  }
  SUBCASE("by one that had another") {
    Trainer trainer(options_in("run"), quiet_log());
    REQUIRE(load_error(trainer, dir / "run/checkpoint_6.pt").empty());
    const StateDict before = callback_states(trainer);
    CHECK(before.at("SaveCheckpointState/saves").as_int() == 3);
    CHECK_FALSE(load_error(trainer, dir / "edited.pt").empty());
    CHECK(first_difference(before, callback_states(trainer)).empty());
  }
}

TEST_CASE("a fit that is refused for its numeric environment leaves the threads as they were") {
  const WithThreads as_before;
  const TempDir dir;
  train_whole_run(whole_options(dir / "run"));
  StateDict state = read_checkpoint(dir / "run/checkpoint_4.pt");
  dict(state, "__metadata__/environment").set("threads", 7);
  dict(state, "__metadata__/environment").set("libtorch", "0.0");
  write_checkpoint(*real_file_system(), dir / "edited.pt", state);
  TrainerOptions options = whole_options(dir / "other");
  options.backend.threads = 0;
  Trainer trainer(options, quiet_log());
  const int threads = at::get_num_threads();
  CHECK_THROWS_AS(trainer.fit(tiny_loader("train"), {}, LoadFrom(dir / "edited.pt")), Error);
  CHECK(at::get_num_threads() == threads);
}

TEST_CASE("a newest checkpoint that cannot be read is named, and the one before it is loaded") {
  const TempDir dir;
  const StateDict straight = train_whole_run(whole_options(dir / "run"));
  damage(dir / "run/checkpoint_6.pt");
  std::vector<std::string> lines;
  Trainer trainer(whole_options(dir / "run"), quiet_log(&lines));
  CHECK(trainer.fit(tiny_loader("train")).steps_now == 2);
  CHECK(mentions(lines, "checkpoint_6.pt"));
  CHECK(first_difference(straight, bits_of(trainer)).empty());
}

TEST_CASE("when no checkpoint can be read the run does not begin afresh by itself") {
  const TempDir dir;
  train_whole_run(whole_options(dir / "run"));
  for (const char* name : {"run/checkpoint_2.pt", "run/checkpoint_4.pt", "run/checkpoint_6.pt"}) {
    damage(dir / name);
  }
  Trainer trainer(whole_options(dir / "run"), quiet_log());
  const std::string error = load_error(trainer, {});
  CHECK(error.find("checkpoint_6.pt") != std::string::npos);
  CHECK_THROWS_AS(trainer.fit(tiny_loader("train")), Error);
  CHECK(Trainer(whole_options(dir / "run"), quiet_log())
            .fit(tiny_loader("train"), {}, LoadFrom::nothing())
            .steps_now == 6);
}

TEST_CASE("a named file that cannot be read is an error") {
  const TempDir dir;
  train_whole_run(whole_options(dir / "run"));
  damage(dir / "run/checkpoint_6.pt");
  Trainer trainer(whole_options(dir / "run"), quiet_log());
  CHECK(!load_error(trainer, dir / "run/checkpoint_6.pt").empty());
  CHECK(load_error(trainer, dir / "run/checkpoint_4.pt").empty());
}

TEST_CASE("T110: strictness covers names; what is loaded in part is reported") {
  const TempDir dir;
  train_whole_run(whole_options(dir / "run"));
  StateDict state = read_checkpoint(dir / "run/checkpoint_4.pt");
  dict(state, "model").erase("0.bias");
  dict(state, "model").set("extra", torch::zeros({1}));
  write_checkpoint(*real_file_system(), dir / "edited.pt", state);
  TrainerOptions options = whole_options(dir / "other");
  options.checkpoint.disable_strict_checkpoint_loading = true;
  std::vector<std::string> lines;
  Trainer trainer(options, quiet_log(&lines));
  CHECK(load_error(trainer, dir / "edited.pt").empty());
  CHECK(mentions(lines, "0.bias"));
  CHECK(mentions(lines, "extra"));
  CHECK(equal_bytes(bits_of(trainer).at("model/0.weight").as_tensor(),
                    state.at("model/0.weight").as_tensor()));
}

TEST_CASE("T111: another version fails, or warns; a local one is not compared") {
  const TempDir dir;
  train_whole_run(whole_options(dir / "run"));
  const auto load_version = [&](const char* version, bool strict, std::vector<std::string>* lines) {
    StateDict state = read_checkpoint(dir / "run/checkpoint_4.pt");
    dict(state, "__metadata__").set("version", version);
    write_checkpoint(*real_file_system(), dir / "edited.pt", state);
    TrainerOptions options = whole_options(dir / "other");
    options.checkpoint.strict_version = strict;
    Trainer trainer(options, quiet_log(lines));
    return load_error(trainer, dir / "edited.pt");
  };
  std::vector<std::string> lines;
  CHECK(load_version("99.1.0", true, &lines).find("99.1.0") != std::string::npos);
  CHECK(load_version("99.1.0", false, &lines).empty());
  CHECK(mentions(lines, "99.1.0"));
  CHECK(load_version("99.1.0+mine", true, nullptr).empty());
}

TEST_CASE("T113, C57: weights alone begin a run at update 0 with a fresh optimizer") {
  const TempDir dir;
  train_whole_run(whole_options(dir / "first"));
  const StateDict saved = read_checkpoint(dir / "first/checkpoint_6.pt");
  TrainerOptions options = whole_options(dir / "second");
  options.checkpoint.load.path = dir / "first/checkpoint_6.pt";
  options.checkpoint.load.weights_only = true;
  Trainer fresh(whole_options(dir / "third"), quiet_log());
  Trainer trainer(options, quiet_log());
  trainer.load_checkpoint({});
  const StateDict now = bits_of(trainer);
  CHECK(trainer.state().global_step() == 0);
  CHECK(first_difference(now.at("model").as_dict(), saved.at("model").as_dict()).empty());
  CHECK(first_difference(now.at("optimizer").as_dict(), bits_of(fresh).at("optimizer").as_dict())
            .empty());
}

TEST_CASE("C57: weights alone with a missing or an extra name fail, unless strictness is off") {
  const TempDir dir;
  train_whole_run(whole_options(dir / "first"));

  struct Change {
    const char* name;  ///< that the error names
    bool is_missing;
  };

  for (const Change& edit : {Change{"0.bias", true}, Change{"extra", false}}) {
    CAPTURE(std::string(edit.name));
    StateDict state = read_checkpoint(dir / "first/checkpoint_6.pt");
    if (edit.is_missing) {
      dict(state, "model").erase(edit.name);
    } else {
      dict(state, "model").set(edit.name, torch::zeros({1}));
    }
    write_checkpoint(*real_file_system(), dir / "edited.pt", state);
    TrainerOptions options = whole_options(dir / "second");
    options.checkpoint.load.path = dir / "edited.pt";
    options.checkpoint.load.weights_only = true;
    Trainer strict(options, quiet_log());
    CHECK(load_error(strict, {}).find(edit.name) != std::string::npos);
    options.checkpoint.disable_strict_checkpoint_loading = true;
    std::vector<std::string> lines;
    Trainer tolerant(options, quiet_log(&lines));
    CHECK(load_error(tolerant, {}).empty());
    CHECK(mentions(lines, edit.name));
    CHECK(equal_bytes(bits_of(tolerant).at("model/0.weight").as_tensor(),
                      state.at("model/0.weight").as_tensor()));
  }
}

TEST_CASE("C62: what a run begins with is passed over once it has a checkpoint of its own") {
  const TempDir dir;
  train_whole_run(whole_options(dir / "first"));
  TrainerOptions options = whole_options(dir / "second");
  options.checkpoint.load.path = dir / "first/checkpoint_6.pt";
  options.checkpoint.load.weights_only = true;
  const StateDict straight = train_whole_run(options);
  options.loop.max_steps = 8;
  Trainer again(options, quiet_log());
  CHECK(again.fit(tiny_loader("train")).steps_now == 2);
  CHECK(fs::exists(dir / "first/checkpoint_2.pt"));

  TrainerOptions uninterrupted = options;
  uninterrupted.model_dir = dir / "third";
  CHECK(first_difference(bits_of(again), train_whole_run(uninterrupted)).empty());
  options.checkpoint.load = {};  // the path had a part in what came out
  options.model_dir = dir / "fourth";
  CHECK_FALSE(first_difference(bits_of(again), train_whole_run(options)).empty());
}

TEST_CASE("C55: what is ignored stays as the run made it; a glob that matches nothing is told") {
  const TempDir dir;
  train_whole_run(whole_options(dir / "first"));
  const StateDict saved = read_checkpoint(dir / "first/checkpoint_6.pt");
  TrainerOptions options = whole_options(dir / "second");
  options.checkpoint.load.path = dir / "first/checkpoint_6.pt";
  options.checkpoint.load.ignore = {"state/model/*bias", "rng", "nothing*"};
  std::vector<std::string> lines;
  Trainer trainer(options, quiet_log(&lines));
  const StateDict before = bits_of(trainer);
  trainer.load_checkpoint({});
  const StateDict now = bits_of(trainer);
  CHECK(equal_bytes(now.at("model/0.weight").as_tensor(), saved.at("model/0.weight").as_tensor()));
  CHECK(equal_bytes(now.at("model/0.bias").as_tensor(), before.at("model/0.bias").as_tensor()));
  CHECK(first_difference(now.at("rng").as_dict(), before.at("rng").as_dict()).empty());
  CHECK(trainer.state().global_step() == 6);
  CHECK(mentions(lines, "nothing*"));
  CHECK_FALSE(mentions(lines, "\"rng\""));
}

TEST_CASE("parameters of another model are renamed on their way in, a Python state_dict's too") {
  const TempDir dir;
  train_whole_run(whole_options(dir / "first"));
  const StateDict saved = read_checkpoint(dir / "first/checkpoint_6.pt");
  StateDict plain;
  for (const StateDict::Item& item : saved.at("model").as_dict().items()) {
    plain.set("body.head" + item.first.substr(1), item.second);
  }
  write_checkpoint(*real_file_system(), dir / "plain.pt", plain);
  TrainerOptions options = whole_options(dir / "second");
  options.checkpoint.load.path = dir / "plain.pt";
  options.checkpoint.load.rename = {{"*.head.*", "0.*"}};
  std::vector<std::string> lines;
  Trainer refused(options, quiet_log(&lines));
  CHECK(load_error(refused, {}).find("0.body") != std::string::npos);
  options.checkpoint.load.rename = {{"body.head.*", "0.*"}, {"unused.*", "x"}};
  Trainer trainer(options, quiet_log(&lines));
  trainer.load_checkpoint({});
  CHECK(mentions(lines, "unused.*"));
  CHECK(first_difference(bits_of(trainer).at("model").as_dict(), saved.at("model").as_dict())
            .empty());
}

TEST_SUITE_END();
