#include "trainer/run_config.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "callbacks/core/run_schedule_callback.h"
#include "configs/overrides.h"
#include "configs/toml_file.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/random.h"
#include "support/builtins.h"
#include "support/campaign.h"
#include "support/temp_dir.h"
#include "trainer/trainer.h"

using namespace rondo;
using rondo::test::builtins;

namespace {

std::vector<std::filesystem::path> recipes() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(RONDO_SOURCE_DIR "/configs/recipes")) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

const char* const kRun = R"(
[trainer.init]
model_dir = "runs/x"
seed = 1
model = { name = "Mlp", sizes = [784, 10] }
loop = { max_steps = 10 }
[trainer.init.optimizer.SGD]
lr = 0.1
[trainer.fit]
train_dataloader = { label = "train", dataset = "Glyphs", size = 20, batch_size = 4 }
)";

RunConfig read(const std::string& text) {
  return read_run_config(parse_toml(text, "run.toml"), builtins());
}

std::vector<Fault> faults_of(const std::string& text) {
  try {
    read(text);
  } catch (const ConfigError& error) {
    return error.faults;
  }
  return {};
}

/// `kRun` with one assignment from the command line.
std::vector<Fault> faults_with(const std::string& assignment) {
  ConfigValue root = parse_toml(kRun, "run.toml");
  try {
    apply_override(root, assignment);
    read_run_config(root, builtins());
  } catch (const ConfigError& error) {
    return error.faults;
  }
  return {};
}

std::string mutated(const std::string& text, KeyedRandom& random) {
  std::string out = text;
  const auto position = [&] { return static_cast<size_t>(random.below(out.size())); };
  for (uint64_t i = 0; i <= random.below(4) && !out.empty(); ++i) {
    switch (random.below(5)) {
      case 0:
        out[position()] = static_cast<char>(random.below(256));
        break;
      case 1:
        out.erase(position(), 1 + random.below(12));
        break;
      case 2: {
        const std::string piece = out.substr(position(), 1 + random.below(40));
        out.insert(position(), piece);
        break;
      }
      case 3: {
        static const char* const kWords[] = {"-1",
                                             "1e999",
                                             "\"x\"",
                                             "[]",
                                             "{}",
                                             "true",
                                             "[[",
                                             "9223372036854775808",
                                             "nan",
                                             "1979-05-27"};
        out.insert(position(), kWords[random.below(10)]);
        break;
      }
      default: {
        const size_t digit = out.find_first_of("0123456789", position());
        if (digit != std::string::npos) {
          out.replace(digit, 1, "-7");
        }
      }
    }
  }
  return out;
}

}  // namespace

TEST_SUITE_BEGIN("trainer/run_config");

TEST_CASE("every recipe is without fault, and its resolved form reads back to the same") {
  REQUIRE(recipes().size() >= 3);
  for (const std::filesystem::path& file : recipes()) {
    CAPTURE(file.string());
    const RunConfig run = read_run_config(read_toml_file(file), builtins());
    const RunConfig again = read(run.init.config_text);
    CHECK(again.init.config_text == run.init.config_text);
  }
}

TEST_CASE("T132: what is missing is said, each in its own words") {
  const auto only_fault = [](const std::string& text) {
    const std::vector<Fault> faults = faults_of(text);
    REQUIRE(faults.size() == 1);
    return faults[0];
  };
  const std::string begin = "[trainer.init]\nmodel_dir = \"x\"\n";
  const Fault no_trainer = only_fault("");
  const Fault no_init = only_fault("[trainer]\n");
  const Fault no_model = only_fault(begin);
  const Fault no_name = only_fault(begin + "model = { sizes = [3, 2] }\n");
  CHECK(no_trainer.message.find("trainer") != std::string::npos);
  CHECK(no_init.message.find("init") != std::string::npos);
  CHECK(no_model.message.find("\"model\"") != std::string::npos);
  CHECK(no_name.message.find("name") != std::string::npos);
  CHECK(no_name.position.line == 3);
  const std::set<std::string> different = {
      no_trainer.message, no_init.message, no_model.message, no_name.message};
  CHECK(different.size() == 4);
}

TEST_CASE("all faults of a file come at once, with their places and a suggestion") {
  const std::vector<Fault> faults = faults_of(
      "[trainer.init]\nmodel_dir = \"x\"\nmodel = { name = \"Mlp\", sizes = [784, 10] }\n"
      "loop = { eval_frequency = -3 }\n[trainer.init.optimizer.AdamW]\nlrr = 1\n");
  REQUIRE(faults.size() == 2);
  CHECK(faults[0].position.line == 4);
  CHECK(faults[0].path == "trainer.init.loop.eval_frequency");
  CHECK(faults[1].position.line == 6);
  CHECK(faults[1].position.column == 1);
  CHECK(faults[1].message.find("\"lr\"") != std::string::npos);
}

TEST_CASE("what only several keys together say is a fault of the file as well, with its place") {
  const std::vector<Fault> faults = faults_of(
      "[trainer.init]\nmodel_dir = \"\"\nmodel = { name = \"Mlp\", sizes = [784, 10] }\n"
      "loop = { num_epochs = 1, num_steps = 2 }\n"
      "precision = { max_gradient_norm = 1.0, max_gradient_value = 1.0 }\n"
      "checkpoint = { checkpoint_name = \"x_{spet}.pt\", nonsense = 1 }\n"
      "[trainer.fit]\ntrain_dataloader = { dataset = \"Glyphs\" }\n");
  std::vector<int> lines;
  for (const Fault& fault : faults) {
    lines.push_back(fault.position.line);
  }
  std::sort(lines.begin(), lines.end());
  CHECK(lines == std::vector<int>{2, 4, 5, 6, 6, 7});
}

TEST_CASE(
    "a key of a loader that is mistyped is compared with the loader's keys and its data set's") {
  const std::vector<Fault> faults = faults_of(
      "[trainer.init]\nmodel_dir = \"x\"\nmodel = { name = \"Mlp\", sizes = [784, 10] }\n"
      "[trainer.init.optimizer.SGD]\n[trainer.fit]\ntrain_dataloader = { dataset = \"Glyphs\", "
      "batch_sise = 3, nosie = 1.0 }\n");
  REQUIRE(faults.size() == 2);
  CHECK(faults[0].message.find("\"batch_size\"?") != std::string::npos);
  CHECK(faults[1].message.find("\"noise\"?") != std::string::npos);
}

TEST_CASE("algorithms of Composer that are other components here are refused with their place") {
  const std::vector<Fault> faults =
      faults_with("trainer.init.algorithms=[{EMA={half_life=\"1000ba\"}}, {SAM={}}, {SWA={}}]");
  REQUIRE(faults.size() == 3);
  CHECK(faults[0].message.find("AverageWeights = { kind = \"ema\"") != std::string::npos);
  CHECK(faults[1].message.find("step = { Sam") != std::string::npos);
  CHECK(faults[2].message.find("kind = \"swa\"") != std::string::npos);
  CHECK(faults_with("trainer.init.callbacks=[{AverageWeights={half_life=\"1000ba\"}}]").empty());
  CHECK(faults_with("trainer.init.callbacks=[{AverageWeights={start=\"0.7dur\"}}]").empty());
}

TEST_CASE(
    "T131, T132: entries of lists name one component each, whatever its case; false takes a "
    "default away") {
  const std::vector<Fault> two =
      faults_with("trainer.init.callbacks=[{KeepNCheckpoints={n=2}, Other=true}]");
  REQUIRE(two.size() == 1);
  CHECK(two[0].path.find("trainer.init.callbacks") == 0);
  const std::vector<Fault> unknown =
      faults_with("trainer.init.callbacks=[{KeepNCheckpoints={m=2}}]");
  REQUIRE(unknown.size() == 1);
  CHECK(unknown[0].message.find("\"m\"") != std::string::npos);
  CHECK(faults_with("trainer.init.callbacks=[{keepncheckpoints={n=2}}]").empty());
  CHECK(faults_with("trainer.init.loggers=[{NoSuchLogger=true}]").size() == 1);
  const RunConfig with_defaults = read(kRun);
  const auto names = [](const auto& components) {
    std::vector<std::string> found;
    for (const auto& component : components) {
      found.push_back(component.name());
    }
    return found;
  };
  using Names = std::vector<std::string>;
  const Names defaults = names(with_defaults.init.loggers);
  CHECK(defaults == Names{"ProgressLogger", "JsonlLogger", "RecordLogger"});
  const Names callbacks = names(with_defaults.init.callbacks);
  ConfigValue root = parse_toml(kRun, "run.toml");
  apply_override(root, "trainer.init.loggers=[{JsonlLogger=false}]");
  const Names left = names(read_run_config(root, builtins()).init.loggers);
  CHECK(left == Names{"ProgressLogger", "RecordLogger"});
  apply_override(root, "trainer.init.loggers=[{jsonllogger=true}]");
  CHECK(names(read_run_config(root, builtins()).init.loggers).size() == 3);  // named: not twice
  for (const std::string& name : callbacks) {
    CAPTURE(name);
    ConfigValue without = parse_toml(kRun, "run.toml");
    apply_override(without, "trainer.init.callbacks=[{" + name + "=false}]");
    const Names rest = names(read_run_config(without, builtins()).init.callbacks);
    CHECK(rest.size() == callbacks.size() - 1);
    CHECK(std::count(rest.begin(), rest.end(), name) == 0);
  }
}

TEST_CASE("T133: 1 and 1.0 differ; false loads nothing, absent the newest") {
  ConfigValue root = parse_toml(kRun, "run.toml");
  apply_override(root, "trainer.init.loop.eval_frequency=1");
  CHECK(read_run_config(root, builtins()).init.loop.eval_frequency.unit() == TimeUnit::Update);
  apply_override(root, "trainer.init.loop.eval_frequency=1.0");
  CHECK(read_run_config(root, builtins()).init.loop.eval_frequency.unit() == TimeUnit::Fraction);
  CHECK_FALSE(read(kRun).fit->from.is_nothing());
  apply_override(root, "trainer.fit.ckpt_path=false");
  CHECK(read_run_config(root, builtins()).fit->from.is_nothing());
}

TEST_CASE("learning_rate is lr, in optimizers and their groups; both at once are a fault") {
  const std::string text = read(kRun).init.config_text;
  const auto with = [](const std::string& assignment) {
    ConfigValue root = parse_toml(kRun, "run.toml");
    apply_override(root, assignment);
    return read_run_config(root, builtins()).init.config_text;
  };
  CHECK(with("trainer.init.optimizer={ SGD = { learning_rate = 0.1 } }") == text);
  const char* const kGroups =
      "trainer.init.optimizer={{ SGD = {{ {0} = 0.1, params = [{{ params = ['*'], {0} = 0.2 }}] }} "
      "}}";
  CHECK(with(fmt::format(kGroups, "learning_rate")) == with(fmt::format(kGroups, "lr")));
  const auto faults = faults_with("trainer.init.optimizer.SGD.learning_rate=0.2");
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].message.find("learning_rate and lr") != std::string::npos);
}

TEST_CASE("F146: validate_all takes a number of batches of each loader") {
  ConfigValue root = parse_toml(kRun, "run.toml");
  apply_override(root,
                 "trainer.validate_all={ val_dataloaders = [\"train\"], subset_num_batches = 2 }");
  const RunConfig run = read_run_config(root, builtins());
  CHECK(run.validate_all->subset_num_batches == 2);
  CHECK(run.init.config_text.find("subset_num_batches = 2") != std::string::npos);
  CHECK(
      faults_with("trainer.validate_all={ val_dataloaders = [\"train\"], subset_num_batches = 0 }")
          .size() == 1);
}

TEST_CASE("a plugin's core callback takes the place of a slot's") {
  Registries own;
  register_builtins(own);
  own.slots.add<RunScheduleCallback>("MySchedule", "Another schedule.");
  ConfigValue root = parse_toml(kRun, "run.toml");
  apply_override(root, "trainer.init.slots={ run_schedule = { MySchedule = true } }");
  const RunConfig run = read_run_config(root, own);
  CHECK(run.init.slots.at("run_schedule").name() == "MySchedule");
  CHECK(read_run_config(parse_toml(run.init.config_text, "again.toml"), own).init.config_text ==
        run.init.config_text);
  CHECK(faults_with("trainer.init.slots={ run_schedule = { MySchedule = true } }").size() == 1);
  CHECK(faults_with("trainer.init.slots={ schedule = {} }").size() >= 1);
}

TEST_CASE("T82: the limit of restarts is an integer of 0 or more") {
  CHECK(faults_with("trainer.init.autorestart.max_num_restarts=0").empty());
  CHECK(faults_with("trainer.init.autorestart.max_num_restarts=-1").size() == 1);
  CHECK(faults_with("trainer.init.autorestart.min_num_csx=1").size() == 1);
}

TEST_CASE("what a run would fail at when it starts is a fault of the file, all of it at once") {
  const std::vector<Fault> faults = faults_of(
      "[trainer.init]\nmodel_dir = \"x\"\nmodel = { name = \"Mlp\", sizes = [784, 10] }\n"
      "logging = { log_steps = \"-1sec\" }\n"
      "sparsity = { sparsity = 1.0 }\n"
      "checkpoint = { steps = \"-3ep\" }\n"
      "[trainer.init.loop]\nmax_steps = 9223372036854775807\neval_steps = \"2ep\"\n"
      "num_epochs = 9000000000000000\nsteps_per_epoch = 100000\n");
  std::vector<int> lines;
  for (const Fault& fault : faults) {
    CHECK(fault.position.file == "run.toml");
    lines.push_back(fault.position.line);
  }
  std::sort(lines.begin(), lines.end());
  CHECK(lines == std::vector<int>{4, 5, 6, 7, 8, 9});
  CHECK(faults_with("trainer.init.loop.num_epochs=9223372036854775807").size() == 1);
  CHECK(faults_with("trainer.init.loop.grad_accum_steps=9223372036854775807").size() == 1);
  for (const char* right : {"0.5", "1.0", "3", "\"3ba\""}) {
    CHECK(faults_with(std::string("trainer.init.loop.eval_steps=") + right).empty());
  }
  for (const char* wrong : {"0", "1.5", "-0.5", "\"3s\"", "false"}) {
    const auto found = faults_with(std::string("trainer.init.loop.eval_steps=") + wrong);
    REQUIRE(found.size() == 1);
    CHECK(found[0].path == "trainer.init.loop.eval_steps");
  }
}

TEST_CASE("lengths of schedules are times of any unit, and no negative numbers") {
  const auto with = [](const std::string& scheduler) {
    return faults_with("trainer.init.schedulers=[{ " + scheduler + " }]").size();
  };
  const std::string linear = "LinearLR = { initial_learning_rate = 1.0, total_iters = ";
  for (const char* right :
       {"10", "0", "0.5", "\"2ep\"", "\"10ba\"", "\"10000sp\"", "\"2e6tok\"", "\"1h\""}) {
    CHECK(with(linear + right + " }") == 0);
  }
  for (const char* wrong : {"-1", "-0.5", "\"soon\"", "true"}) {
    CHECK(with(linear + wrong + " }") == 1);
  }
  CHECK(with("StepLR = { initial_learning_rate = 1.0, step_size = 0 }") == 1);
  const std::string two = "SequentialLR = { schedulers = [{ " + linear + "4 } }, { " + linear +
                          "4 } }], milestones = [";
  CHECK(with(two + "4] }") == 0);
  CHECK(with(two + "\"9sp\"] }") == 0);
  CHECK(with(two + "-4] }") == 1);
}

TEST_CASE("sizes, widths and dropout of models are checked with the file") {
  CHECK(faults_with("trainer.init.model.sizes=[784]").size() == 1);
  CHECK(faults_with("trainer.init.model.sizes=[784, 0]").size() == 1);
  CHECK(faults_with("trainer.init.model.dropout=1").size() == 1);
  CHECK(faults_with("trainer.init.model={ name = \"Cnn\", widths = [] }").size() == 1);
  CHECK(faults_with("trainer.init.model={ name = \"Cnn\", widths = [8, -1] }").size() == 1);
}

TEST_CASE("options of a component that do not go together are a fault at the component") {
  const char* const bad[] = {
      "trainer.init.model={ name = \"Gpt\", heads = 3, width = 64 }",
      "trainer.init.model={ name = \"Cnn\", image_size = 2, widths = [4, 4] }",
      "trainer.init.model={ name = \"ScriptModel\", path = \"\" }",
      "trainer.init.optimizer={ SGD = { nesterov = true } }",
      "trainer.init.optimizer={ AdamW = { params = [{ params = [\"*\"], momentum = 0.5 }] } }",
      "trainer.init.schedulers=[{ SequentialLR = { schedulers = [] } }]",
      "trainer.init.callbacks=[{ EarlyStopper = { metric = \"loss\", patience = \"-1ep\" } }]",
      "trainer.init.callbacks=[{ LoadCheckpointStates = { states = [] } }]",
      "trainer.init.callbacks=[{ ComputeNorm = { layer_pattern = \"no_group\" } }]",
  };
  for (const char* text : bad) {
    CAPTURE(text);
    const std::vector<Fault> faults = faults_with(text);
    REQUIRE(faults.size() == 1);
    CHECK(faults[0].path.find("trainer.init.") == 0);
  }
  // Of options of which one is wrong by itself, only that one is told.
  CHECK(faults_with("trainer.init.model={ name = \"Gpt\", heads = 0, width = 64 }").size() == 1);
}

TEST_CASE("a label names a callback or logger, is kept, and is checked with the file") {
  std::string text = kRun;
  text.insert(text.find("[trainer.init.optimizer"),
              "callbacks = [{ EarlyStopper = { metric = \"loss\", label = \"patience\" } }]\n"
              "loggers = [{ CsvLogger = { label = \"table\" } }]\n");
  const RunConfig run = read(text);
  CHECK(run.init.callbacks.front().label() == "patience");
  CHECK(run.init.loggers.front().label() == "table");
  const RunConfig again = read(run.init.config_text);
  CHECK(again.init.callbacks.front().label() == "patience");
  CHECK(again.init.config_text == run.init.config_text);
  const char* const bad[] = {
      "trainer.init.callbacks=[{ MemoryMonitor = { label = \"a b\" } }]",
      "trainer.init.callbacks=[{ MemoryMonitor = { label = 3 } }]",
      "trainer.init.callbacks=[{ MemoryMonitor = { label = \"\" } }]",
      "trainer.init.callbacks=[{ MemoryMonitor = { label = \"model\" } }]",
      "trainer.init.callbacks=[{ MemoryMonitor = { label = \"a\" } }, { MemoryMonitor = { label = "
      "\"a\" } }]",
  };
  for (const char* one : bad) {
    CAPTURE(one);
    CHECK(faults_with(one).size() == 1);
  }
}

TEST_CASE("what only a built model shows is told with the place in the file") {
  const test::TempDir dir;
  const auto failure_of = [&](const std::string& line) -> std::string {
    std::string text = kRun;
    text.replace(text.find("runs/x"), 6, dir.path().string());
    text.insert(text.find("[trainer.init.optimizer"), line + "\n");
    try {
      const RunConfig run = read(text);
      Trainer trainer(run.init);
      trainer.fit(run.fit->train);
      return "nothing was thrown";
    } catch (const HookError& error) {
      return error.what();
    }
  };
  CHECK(failure_of("sparsity = { sparsity = 0.5, params = [\"none\"] }").find("run.toml:7:1") !=
        std::string::npos);
  CHECK(failure_of("callbacks = [{ SampleText = { prompt = \"a\" } }]").find("run.toml:7:16") !=
        std::string::npos);
}

TEST_CASE("T136: several phases are read in order; a file of one phase is asked for otherwise") {
  const std::string one = kRun;
  const std::string two = std::string(one).replace(one.find("[trainer.init]"), 0, "[[trainer]]\n") +
                          "[[trainer]]\n[trainer.init]\nmodel_dir = \"runs/y\"\n"
                          "model = { name = \"Mlp\", sizes = [784, 10] }\n";
  const ConfigValue root = parse_toml(two, "run.toml");
  const std::vector<RunConfig> phases = read_phases(root, builtins());
  REQUIRE(phases.size() == 2);
  CHECK(phases[0].init.model_dir == "runs/x");
  CHECK(phases[0].fit);
  CHECK(phases[1].init.model_dir == "runs/y");
  CHECK_FALSE(phases[1].fit);
  CHECK_THROWS_AS(read_run_config(root, builtins()), ConfigError);
  ConfigValue broken = root;
  apply_override(broken, "trainer[1].init.model.sizes=[1]");
  try {
    read_phases(broken, builtins());
    FAIL("nothing was thrown");
  } catch (const ConfigError& error) {
    REQUIRE(error.faults.size() == 1);
    CHECK(error.faults[0].path == "trainer[1].init.model.Mlp.sizes");
  }
}

TEST_CASE("a label stands once in a list, and names one loader where it is referred to") {
  const auto with = [](const std::string& sections) {
    return faults_of(kRun + ("val_dataloader = [\n" + sections));
  };
  const std::string val = "{ label = \"val\", dataset = \"Glyphs\", size = 8 }";
  const std::string larger = "{ dataset = \"Glyphs\", size = 9, label = \"val\" }";
  const std::string validate = "[trainer.validate]\nval_dataloader = ";
  CHECK(with(val + "]\n" + validate + "\"val\"\n").empty());
  CHECK(with(val + "]\n" + validate + val + "\n").empty());  // the same again
  CHECK(with("{ dataset = \"Glyphs\" },\n{ dataset = \"Glyphs\" }]\n").empty());

  const std::vector<Fault> two = with(val + ",\n" + larger + "]\n");
  REQUIRE(two.size() == 1);
  CHECK(two[0].position.line == 13);
  CHECK(two[0].position.column == static_cast<int>(larger.find("\"val\"")) + 1);
  CHECK(two[0].path == "trainer.fit.val_dataloader[1]");
  CHECK(with(val + ",\n" + val + "]\n").size() == 1);
  const std::string validate_all = "[trainer.validate_all]\nval_dataloaders = ";
  CHECK(with(val + "]\n" + validate_all + "[\"val\", \"val\"]\n").size() == 1);
  CHECK(with("{ label = \"train\", dataset = \"Glyphs\" }]\n").empty());
  CHECK(with(val + "]\n" + validate + larger + "\n").empty());  // more data than within the fit

  const auto unclear = with(val + "]\n" + validate + larger + "\n" + validate_all + "[\"val\"]\n");
  REQUIRE(unclear.size() == 1);
  CHECK(unclear[0].message.find("run.toml:12:11") != std::string::npos);
}

TEST_CASE("an override is read as TOML, else as a string; its faults name the command line") {
  CHECK(faults_with("trainer.init.model_dir=runs/a").empty());
  CHECK(faults_with("trainer.init.loop.max_steps=20").empty());
  const std::vector<Fault> faults = faults_with("trainer.init.loop.max_steps=many");
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].position.file == "command line");
  CHECK(faults_with("trainer.init.seed.deep=1").size() == 1);
  CHECK(faults_with("nothing").size() == 1);
  CHECK(faults_with("trainer..init=1").size() == 1);
}

TEST_CASE(
    "T87: a device beside the tables is short for backend.device; two that differ are refused") {
  CHECK(faults_with("trainer.init.device=cpu").empty());
  const RunConfig neither = read(kRun);
  CHECK(neither.init.backend.mode == "traced");
  CHECK(neither.init.backend.device == "cpu");
  ConfigValue cuda = parse_toml(kRun, "run.toml");
  apply_override(cuda, "trainer.init.device=cuda");
  CHECK(read_run_config(cuda, builtins()).init.backend.device == "cuda");
  CHECK(faults_with("trainer.init.device=cuda:1").empty());
  CHECK(faults_with("trainer.init.device=cuda:one").size() == 1);
  ConfigValue root = parse_toml(kRun, "run.toml");
  apply_override(root, "trainer.init.device=cpu");
  apply_override(root, "trainer.init.backend={device=\"cuda\"}");
  try {
    read_run_config(root, builtins());
    FAIL("two devices were taken");
  } catch (const ConfigError& error) {
    REQUIRE(error.faults.size() == 1);
    CHECK(error.faults[0].message.find("cpu") != std::string::npos);
    CHECK(error.faults[0].message.find("cuda") != std::string::npos);
  }
  const std::vector<Fault> unknown = faults_with("trainer.init.device=TPU");
  REQUIRE(unknown.size() == 1);
  CHECK(unknown[0].message.find("TPU") != std::string::npos);
}

TEST_CASE("a mutated recipe is read, or refused with a ConfigError: nothing else") {
  const int rounds = 1700 * rondo::test::campaign_scale();
  for (const std::filesystem::path& file : recipes()) {
    const std::string text = real_file_system()->read(file);
    for (int seed = 0; seed < rounds; ++seed) {
      KeyedRandom random(static_cast<uint64_t>(seed));
      const std::string changed = mutated(text, random);
      CAPTURE(seed);
      try {
        read(changed);
      } catch (const ConfigError&) {
      } catch (const std::exception& error) {
        FAIL(std::string(file) << " threw " << error.what());
      }
    }
  }
}

TEST_SUITE_END();
