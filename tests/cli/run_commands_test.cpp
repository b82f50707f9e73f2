#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_file.h"
#include "checkpoint/safetensors_file.h"
#include "cli/cli_main.h"
#include "cli/load_run.h"
#include "core/error.h"
#include "core/file_system.h"
#include "support/contains.h"
#include "support/temp_dir.h"
#include "trainer/trainer.h"

using namespace rondo;
using rondo::test::contains;
using rondo::test::TempDir;

namespace {

/// Notes whether a Trainer was built with an optimizer.
class OptimizerSpy final : public Callback {
 public:
  static std::vector<bool>& seen() {
    static std::vector<bool> all;
    return all;
  }

  void post_setup(Trainer& trainer) override {
    seen().push_back(trainer.state().optimizer != nullptr);
  }
};

/// Sends this process a Ctrl-C in the first batch of a validation.
class Interrupter final : public Callback {
 public:
  void on_validate_batch_start(Trainer&, Model&, const Batch&, int64_t batch_idx) override {
    if (batch_idx == 0) {
      std::raise(SIGINT);
    }
  }
};

/// Runs the whole command line in this process.
int run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "rondo");
  std::vector<char*> pointers;
  for (std::string& argument : arguments) {
    pointers.push_back(argument.data());
  }
  return cli_main(static_cast<int>(pointers.size()), pointers.data(), [](Registries& registries) {
    registries.callbacks.add<OptimizerSpy>("OptimizerSpy", "Notes whether there is an optimizer.");
    registries.callbacks.add<Interrupter>("Interrupter", "Interrupts a validation.");
  });
}

/// A phase of 4 updates on 16 glyphs, with every section.
std::string phase(const std::string& table, const std::filesystem::path& model_dir) {
  const std::string data = "{ dataset = \"Glyphs\", size = 16, batch_size = 4 }\n";
  return table + "\n[trainer.init]\nmodel_dir = \"" + model_dir.string() +
         "\"\nseed = 1\n"
         "model = { name = \"Mlp\", sizes = [784, 10] }\n"
         "backend = { mode = \"eager\" }\n"
         "loop = { max_steps = 4 }\n"
         "checkpoint = { steps = 2 }\n"
         "callbacks = [{ OptimizerSpy = true }]\n"
         "loggers = [{ ProgressLogger = false }]\n"
         "[trainer.init.optimizer.SGD]\nlr = 0.1\n"
         "[trainer.fit]\ntrain_dataloader = " +
         data + "[trainer.validate]\nval_dataloader = " + data +
         "[trainer.validate_all]\nval_dataloaders = " + data +
         "[trainer.predict]\ndataloader = " + data;
}

std::string write_file(const TempDir& dir, const std::string& text) {
  const std::filesystem::path path = dir / "run.toml";
  std::ofstream(path) << text;
  return path.string();
}

RunConfig loaded(const std::function<void(CommandLine&)>& fill) {
  static Registries registries;
  static const bool is_filled = [] {
    register_builtins(registries);
    registries.callbacks.add<OptimizerSpy>("OptimizerSpy", "Notes whether there is an optimizer.");
    return true;
  }();
  (void)is_filled;
  CommandLine line;
  fill(line);
  return load_run(line, registries).at(0);
}

/// What a command line writes to stdout and stderr.
std::string output_of(const std::vector<std::string>& arguments, int code) {
  std::ostringstream out;
  std::streambuf* const cout_before = std::cout.rdbuf(out.rdbuf());
  std::streambuf* const cerr_before = std::cerr.rdbuf(out.rdbuf());
  const int got = run(arguments);
  std::cout.rdbuf(cout_before);
  std::cerr.rdbuf(cerr_before);
  CHECK(got == code);
  return out.str();
}

/// The numbers that a bad operator got, as an explanation tells them.
std::string inputs_in(const std::string& explanation) {
  std::istringstream lines(explanation);
  std::string inputs;
  for (std::string line; std::getline(lines, line);) {
    inputs += line.rfind("  in  ", 0) == 0 ? line + "\n" : "";
  }
  return inputs;
}

const char* const kSavesAnything = "trainer.init.checkpoint.require_finite=false";

/// A run whose learning rate explodes in update 7.
const char* const kExplodes =
    "trainer.init.schedulers=[{ StepLR = { initial_learning_rate = 0.1, step_size = 6, gamma = "
    "1e60 } }]";

std::string without_seed(std::string text) {
  const size_t begin = text.find("seed = ");
  return text.erase(begin, text.find('\n', begin) + 1 - begin);
}

/// The newest artifact directory of a run.
std::filesystem::path latest(const TempDir& dir, const char* name) {
  return dir / name / "logs/latest";
}

}  // namespace

TEST_SUITE_BEGIN("cli/run_commands");

TEST_CASE("T134: only what is typed overrides the file; a checkpoint reaches every section") {
  const TempDir dir;
  const std::string file = write_file(dir, phase("[trainer]", dir / "a"));
  const RunConfig as_written = loaded([&](CommandLine& line) { line.config = file; });
  CHECK(as_written.init.model_dir == dir / "a");
  CHECK(as_written.init.loop.max_steps == 4);
  CHECK_FALSE(as_written.fit->from.path());
  CHECK_FALSE(as_written.validate_all->checkpoints);
  const RunConfig typed = loaded([&](CommandLine& line) {
    line.config = file;
    line.checkpoint = "some.pt";
    line.model_dir = "elsewhere";
    line.overrides = {"trainer.init.loop.max_steps=7"};
  });
  CHECK(typed.init.model_dir == "elsewhere");
  CHECK(typed.init.loop.max_steps == 7);
  CHECK(typed.init.seed == 1);
  CHECK(typed.fit->from.path() == "some.pt");
  CHECK(typed.validate->from.path() == "some.pt");
  CHECK(typed.predict->from.path() == "some.pt");
  CHECK(typed.validate_all->checkpoints == std::vector<std::string>{"some.pt"});
  const RunConfig none = loaded([&](CommandLine& line) {
    line.config = file;
    line.checkpoint = "none";
  });
  CHECK(none.fit->from.is_nothing());
  CHECK_FALSE(none.validate_all->checkpoints);
}

TEST_CASE("T134: fit builds an optimizer, validate, validate_all and predict build none") {
  const TempDir dir;
  const std::string file = write_file(dir, phase("[trainer]", dir / "a"));
  OptimizerSpy::seen().clear();
  for (const char* command : {"fit", "validate", "validate_all", "predict"}) {
    CAPTURE(command);
    CHECK(run({command, file}) == 0);
  }
  CHECK(OptimizerSpy::seen() == std::vector<bool>{true, false, false, false});
}

TEST_CASE("T135: validate_all visits every indexed checkpoint, and fails when there is none") {
  const TempDir dir;
  const std::string file = write_file(dir, phase("[trainer]", dir / "a"));
  CHECK(run({"validate_all", file}) == 2);
  CHECK(run({"fit", file}) == 0);
  CHECK(run({"validate_all", file}) == 0);
  const std::string table = real_file_system()->read(latest(dir, "a") / "validate_all.csv");
  CHECK(table.find("checkpoint_2.pt,2,") != std::string::npos);
  CHECK(table.find("checkpoint_4.pt,4,") != std::string::npos);
}

TEST_CASE("an interrupted validate reports no number as its result") {
  const TempDir dir;
  const std::string file = write_file(dir, phase("[trainer]", dir / "a"));
  std::ostringstream out;
  std::streambuf* const before = std::cout.rdbuf(out.rdbuf());
  const int code = run({"validate",
                        file,
                        "--untrained",
                        "--json",
                        "trainer.init.callbacks=[{ Interrupter = true }]"});
  std::cout.rdbuf(before);
  CHECK(code == 130);
  CHECK_MESSAGE(out.str().find("\"metrics\": {}") != std::string::npos, out.str());
  CHECK_MESSAGE(out.str().find("\"rows\": []") != std::string::npos, out.str());
}

TEST_CASE("predict writes the outputs of the whole data set") {
  const TempDir dir;
  const std::string file = write_file(dir, phase("[trainer]", dir / "a"));
  CHECK(run({"fit", file}) == 0);
  CHECK(run({"predict", file, "--json"}) == 0);
  const StateDict outputs = read_checkpoint(latest(dir, "a") / "predictions.pt");
  CHECK(outputs.at("logits").as_tensor().sizes() == at::IntArrayRef({16, 10}));
}

TEST_CASE("predict and validate take the first batches, and predict writes single ones") {
  const TempDir dir;
  const std::string file = write_file(dir, phase("[trainer]", dir / "a"));
  CHECK(run({"fit", file}) == 0);
  CHECK(run({"predict", file, "trainer.predict.subset_num_batches=1"}) == 0);
  const at::Tensor first =
      read_checkpoint(latest(dir, "a") / "predictions.pt").at("logits").as_tensor();
  CHECK(run({"predict", file, "trainer.predict.return_outputs=false"}) == 0);
  const std::filesystem::path folder = latest(dir, "a") / "predictions";
  CHECK(read_checkpoint(folder / "batch_000000.pt").at("logits").as_tensor().equal(first));
  CHECK(real_file_system()->list(folder).size() == static_cast<size_t>(16 / first.size(0)));
  CHECK_FALSE(std::filesystem::exists(latest(dir, "a") / "predictions.pt"));
  CHECK(run({"validate", file, "trainer.validate.subset_num_batches=1"}) == 0);
  CHECK(run({"validate", file, "trainer.validate.subset_num_batches=0"}) == 2);
}

TEST_CASE("T137: a run keeps its file as written, with what the command line changed") {
  const TempDir dir;
  const std::string text = "# my run\n" + phase("[trainer]", dir / "a");
  const std::string file = write_file(dir, text);
  CHECK(run({"fit", file, "trainer.init.seed=11", "trainer.init.loop.max_steps=1"}) == 0);
  const std::string kept =
      real_file_system()->read(latest(dir, "a") / "trainer_params_as_written.toml");
  CHECK(kept == "# as written in: " + file +
                    "\n# override: trainer.init.seed=11\n"
                    "# override: trainer.init.loop.max_steps=1\n\n" +
                    text);
}

TEST_CASE("weights that nobody trained are not evaluated, unless that is asked for") {
  const TempDir dir;
  const std::string file = write_file(dir, phase("[trainer]", dir / "run"));
  for (const char* command : {"validate", "validate_all", "predict"}) {
    CAPTURE(command);
    const std::string text = output_of({command, file}, 2);
    CHECK(contains(text, (dir / "run").string()));
    CHECK(contains(text, "--untrained"));
    CHECK(run({command, file, "--untrained"}) == 0);
  }
  CHECK(run({"validate", file, "--checkpoint=none"}) == 0);
  CHECK(run({"predict", file, "--checkpoint", "none"}) == 0);
  CHECK(run({"fit", file, "trainer.init.checkpoint.steps=0"}) == 0);
  CHECK(std::filesystem::exists(dir / "run/checkpoint_4.pt"));
  for (const char* command : {"validate", "validate_all", "predict"}) {
    CAPTURE(command);
    CHECK(run({command, file}) == 0);
  }
}

TEST_CASE("T136: phases run in order, each with a Trainer of its own; a failure is the last") {
  const TempDir dir;
  const std::string file =
      write_file(dir, phase("[[trainer]]", dir / "a") + phase("[[trainer]]", dir / "b"));
  CHECK(run({"fit", file, "trainer[1].init.loop.max_steps=3"}) == 0);
  CHECK(std::filesystem::exists(dir / "a/checkpoint_4.pt"));
  CHECK(std::filesystem::exists(dir / "b/checkpoint_3.pt"));
  CHECK_FALSE(std::filesystem::exists(dir / "b/checkpoint_4.pt"));
  CHECK(run({"validate", file}) == 0);
  const TempDir other;
  const std::string failing =
      write_file(other, phase("[[trainer]]", other / "a") + phase("[[trainer]]", other / "b"));
  CHECK(run({"fit", failing, "trainer[0].fit.ckpt_path=absent.pt"}) == 1);
  CHECK_FALSE(std::filesystem::exists(other / "b"));
}

TEST_CASE("one directory or one checkpoint for several phases is refused before anything is made") {
  const TempDir dir;
  const std::string one = phase("[[trainer]]", dir / "a");
  const std::string file = write_file(dir, one + phase("[[trainer]]", dir / "b"));
  const std::string elsewhere = (dir / "c").string();
  for (const char* command : {"fit", "validate", "validate_all", "predict"}) {
    CAPTURE(command);
    CHECK(run({command, file, "-o", elsewhere}) == 2);
    CHECK(run({command, file, "--checkpoint", "some.pt"}) == 2);
  }
  CHECK_FALSE(std::filesystem::exists(dir / "c"));
  CHECK_FALSE(std::filesystem::exists(dir / "a"));
  // What the message says to do instead.
  CHECK(run({"fit", file, "--checkpoint", "none", "trainer[0].init.model_dir=" + elsewhere}) == 0);
  CHECK(std::filesystem::exists(dir / "c/checkpoint_4.pt"));
  CHECK(std::filesystem::exists(dir / "b/checkpoint_4.pt"));
  const std::string single = write_file(dir, one);  // a list of one phase
  CHECK(run({"fit", single, "--dry-run", "-o", elsewhere, "--checkpoint", "some.pt"}) == 0);
}

TEST_CASE("T136: limits of restarts stand in all phases or in none") {
  const TempDir dir;
  const std::string watched = "[trainer.init.autorestart]\nmax_num_restarts = 2\n";
  const std::string first = phase("[[trainer]]", dir / "a") + watched;
  const std::string file = write_file(dir, first + phase("[[trainer]]", dir / "b"));
  CHECK(run({"fit", file, "--dry-run"}) == 2);
  write_file(dir, first + phase("[[trainer]]", dir / "b") + watched);
  CHECK(run({"fit", file, "--dry-run"}) == 0);
}

TEST_CASE("debug --nan says which operator a run went bad in, from its newest sound checkpoint") {
  const TempDir dir;
  const std::string file = write_file(dir, phase("[trainer]", dir / "run"));
  CHECK(run({"fit", file, "trainer.init.loop.max_steps=12", kExplodes}) == 1);  // saves at 2, 4, 6
  const std::string run_dir = (dir / "run").string();
  const std::string text = output_of({"debug", run_dir, "--nan"}, 0);
  CHECK_MESSAGE(contains(text, "first bad operator: rondo::sgd_"), text);
  CHECK(std::filesystem::exists(dir / "run" / "debug"));
  output_of({"debug", run_dir, "--nan", "trainer.init.schedulers.0.StepLR.gamma=1.0"}, 1);
  CHECK(run({"debug", (dir / "nothing").string(), "--nan"}) == 1);
}

TEST_CASE("debug --nan says from where to where nothing went bad") {
  const TempDir dir;
  const std::string file = write_file(dir, phase("[trainer]", dir / "run"));
  CHECK(run({"fit", file, "trainer.init.loop.max_steps=6"}) == 0);  // saves at 2, 4, 6
  const std::string run_dir = (dir / "run").string();
  CHECK(contains(output_of({"debug", run_dir, "--nan"}, 1), "ends at update 6"));
  CHECK(contains(output_of({"debug", run_dir, "--nan", "trainer.init.loop.max_steps=9"}, 1),
                 "from update 6 to 9"));
}

TEST_CASE("debug --nan tells nobody but who asked") {
  const TempDir dir;
  const std::string told = (dir / "told").string();
  const std::string file = write_file(dir, phase("[trainer]", dir / "run"));
  const std::string notify =
      "trainer.init.callbacks=[{ NotifyCommand = { command = \"echo told >> " + told + "\" } }]";
  CHECK(run({"fit", file, notify, "trainer.init.loop.max_steps=12", kExplodes}) == 1);
  const std::string once = real_file_system()->read(told);
  output_of({"debug", (dir / "run").string(), "--nan"}, 0);
  CHECK(real_file_system()->read(told) == once);
}

TEST_CASE("debug --nan finds what the last update of a run spoiled, which passed for done") {
  const TempDir dir;
  const std::string file = write_file(dir, phase("[trainer]", dir / "run"));
  CHECK(run({"fit", file, "trainer.init.loop.max_steps=7", kExplodes, kSavesAnything}) == 0);
  const std::string text = output_of({"debug", (dir / "run").string(), "--nan"}, 0);
  CHECK_MESSAGE(contains(text, "checkpoint_7.pt holds NaN"), text);
  CHECK_MESSAGE(contains(text, "from " + (dir / "run/checkpoint_6.pt").string()), text);
  CHECK_MESSAGE(contains(text, "first bad operator: rondo::sgd_"), text);
}

TEST_CASE("debug --nan passes over checkpoints that cannot be read, and names them") {
  const TempDir dir;
  const std::string file = write_file(dir, phase("[trainer]", dir / "run"));
  CHECK(run({"fit", file, "trainer.init.loop.max_steps=12", kExplodes}) == 1);  // saves at 2, 4, 6
  std::ofstream(dir / "run/checkpoint_6.pt") << "damaged";
  std::filesystem::remove(dir / "run/checkpoint_4.pt");
  const std::string text = output_of({"debug", (dir / "run").string(), "--nan"}, 0);
  CHECK_MESSAGE(contains(text, "checkpoint_6.pt"), text);
  CHECK_MESSAGE(contains(text, "checkpoint_4.pt"), text);
  CHECK_MESSAGE(contains(text, "from " + (dir / "run/checkpoint_2.pt").string()), text);
  CHECK_MESSAGE(contains(text, "first bad operator: rondo::sgd_"), text);
  CHECK_FALSE(contains(text, "warning"));
}

TEST_CASE("debug --nan begins before infinity where it can") {
  const TempDir dir;
  const std::string file = write_file(dir, phase("[trainer]", dir / "run"));
  CHECK(run({"fit", file, "trainer.init.loop.max_steps=6"}) == 0);  // saves at 2, 4, 6
  const auto spoil = [&](const char* name) {
    const std::filesystem::path path = dir / "run" / name;
    StateDict state = read_checkpoint(path);
    state.find("model/layer0.weight")->as_tensor()[0][0] = std::numeric_limits<float>::infinity();
    write_checkpoint(*real_file_system(), path, state);
  };
  const std::vector<std::string> debug = {
      "debug", (dir / "run").string(), "--nan", "trainer.init.loop.max_steps=9"};
  spoil("checkpoint_6.pt");
  const std::string before = output_of(debug, 1);
  CHECK_MESSAGE(contains(before, "checkpoint_6.pt holds infinity"), before);
  CHECK_MESSAGE(contains(before, "from " + (dir / "run/checkpoint_4.pt").string()), before);
  CHECK_MESSAGE(contains(before, "from update 4 to 9"), before);
  spoil("checkpoint_4.pt");
  spoil("checkpoint_2.pt");
  const std::string all = output_of(debug, 0);
  CHECK_MESSAGE(contains(all, "from " + (dir / "run/checkpoint_6.pt").string()), all);
}

TEST_CASE("debug --nan begins where the run began, which may be a checkpoint of another one") {
  const TempDir dir;
  const std::string first = write_file(dir, phase("[trainer]", dir / "first"));
  CHECK(run({"fit", first, "trainer.init.seed=2"}) == 0);  // saves at 2, 4
  const std::string file = write_file(dir, phase("[trainer]", dir / "run"));
  const std::string went_bad = output_of({"fit",
                                          file,
                                          "--checkpoint",
                                          (dir / "first/checkpoint_4.pt").string(),
                                          "trainer.init.loop.max_steps=12",
                                          "trainer.init.checkpoint.steps=0",
                                          "trainer.init.backend.mode=traced",
                                          "trainer.init.backend.on_nan=explain",
                                          kExplodes},
                                         1);
  CHECK_FALSE(inputs_in(went_bad).empty());
  CHECK(inputs_in(output_of({"debug", (dir / "run").string(), "--nan"}, 0)) == inputs_in(went_bad));
}

TEST_CASE("debug --nan runs a run without a seed with the one that it drew, or warns") {
  const TempDir dir;
  const std::string file = write_file(dir, without_seed(phase("[trainer]", dir / "run")));
  const std::string run_dir = (dir / "run").string();
  const std::string went_bad = output_of({"fit",
                                          file,
                                          "trainer.init.loop.max_steps=12",
                                          "trainer.init.checkpoint.steps=0",
                                          "trainer.init.backend.mode=traced",
                                          "trainer.init.backend.on_nan=explain",
                                          kExplodes},
                                         1);
  CHECK_FALSE(inputs_in(went_bad).empty());
  const std::string text = output_of({"debug", run_dir, "--nan"}, 0);
  CHECK(inputs_in(text) == inputs_in(went_bad));
  CHECK_FALSE(contains(text, "warning"));

  const auto forget_seed = [&] {
    const std::filesystem::path config = latest(dir, "run") / "trainer_params.toml";
    const std::string unseeded = without_seed(real_file_system()->read(config));
    std::ofstream(config) << unseeded;
  };
  forget_seed();
  CHECK(contains(output_of({"debug", run_dir, "--nan"}, 0), "warning"));
  SUBCASE("the seed may be typed") {
    CHECK_FALSE(
        contains(output_of({"debug", run_dir, "--nan", "trainer.init.seed=5"}, 0), "warning"));
  }
  SUBCASE("a checkpoint knows it, even one that holds NaN already") {
    CHECK(run({"fit", file, "trainer.init.loop.max_steps=7", kExplodes, kSavesAnything}) == 0);
    forget_seed();
    for (const char* sound :
         {"run/checkpoint_2.pt", "run/checkpoint_4.pt", "run/checkpoint_6.pt"}) {
      std::filesystem::remove(dir / sound);
    }
    const std::string told = output_of({"debug", run_dir, "--nan"}, 0);
    CHECK_MESSAGE(contains(told, "from the beginning"), told);
    CHECK_FALSE(contains(told, "warning"));
  }
}

TEST_CASE("the directory of a run that trained names the run, also when it was moved") {
  const TempDir dir;
  const std::string file = write_file(dir, phase("[trainer]", dir / "run"));
  CHECK(run({"fit", file}) == 0);
  std::filesystem::remove(file);
  std::filesystem::rename(dir / "run", dir / "moved");
  const std::string moved = (dir / "moved").string();
  const std::string weights = (dir / "model.safetensors").string();
  CHECK(run({"export", moved, "--format=safetensors", "-o", weights}) == 0);
  CHECK(first_difference(read_safetensors(weights),
                         read_checkpoint(dir / "moved/checkpoint_4.pt").at("model").as_dict()) ==
        "");
  CHECK(run({"validate", moved}) == 0);
  CHECK_FALSE(std::filesystem::exists(dir / "run"));
  std::filesystem::create_directories(dir / "none");
  CHECK(run({"export", (dir / "none").string(), "-o", weights}) == 2);
}

TEST_CASE("export-step writes a file that is a checkpoint file") {
  const TempDir dir;
  const std::string file = write_file(dir, phase("[trainer]", dir / "run"));
  const std::string step = (dir / "new/folder/out.step").string();
  CHECK(run({"export-step", file, step}) == 0);
  CHECK(run({"export-step", file, step + "/below.step"}) == 1);  // a file is in the way
  const StateDict state = read_checkpoint(step);
  CHECK(state.at("rondo_step").as_int() == 1);
  CHECK(state.at("state/model.layer0.weight").is_tensor());
  CHECK_FALSE(std::filesystem::exists(dir / "run" / "export-step"));
}

TEST_CASE("export-step passes over a checkpoint that it cannot read, and names the one it takes") {
  const TempDir dir;
  const std::string file = write_file(dir, phase("[trainer]", dir / "run"));
  CHECK(run({"fit", file}) == 0);  // saves at 2, 4
  std::ofstream(dir / "run/checkpoint_4.pt") << "damaged";
  const std::string text = output_of({"export-step", file, (dir / "out.step").string()}, 0);
  CHECK_MESSAGE(contains(text, "from update 2 of " + (dir / "run/checkpoint_2.pt").string()), text);
}

TEST_CASE("P35: an unknown logger or backend is a wrong config") {
  const TempDir dir;
  const std::string file = write_file(dir, phase("[trainer]", dir / "a"));
  CHECK(run({"fit", file, "trainer.init.loggers=[{ WandbLogger = true }]"}) == 2);
  CHECK(run({"fit", file, "trainer.init.backend={ mode = \"distributed\" }"}) == 2);
  CHECK_FALSE(std::filesystem::exists(dir / "a"));
}

TEST_SUITE_END();
