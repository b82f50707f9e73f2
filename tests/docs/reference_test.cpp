// docs/reference, which `rondo describe --write` makes out of the registry, and its examples.

#include "cli/reference_pages.h"

#include <doctest/doctest.h>

#include <exception>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/component_examples.h"
#include "cli/families.h"
#include "configs/toml_file.h"
#include "core/error.h"
#include "data/data_files.h"
#include "data/optional_reader.h"
#include "docs/example_data.h"
#include "docs/overlay.h"
#include "docs/pages.h"
#include "loops/predict.h"
#include "support/builtins.h"
#include "support/contains.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/auto_options.h"
#include "trainer/section_reader.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

namespace {

/// A component or section that has an example.
struct Shown {
  std::string family;
  std::string name;
};

std::vector<Shown> components() {
  std::vector<Shown> all;
  for_each_family(builtins(), [&](const auto& registry) {
    for (const auto& entry : registry.entries()) {
      all.push_back({registry.family(), entry.name});
    }
  });
  return all;
}

/// The tables of `[trainer.init]`, loaders, and the sections that a file can have.
std::vector<Shown> sections() {
  std::vector<Shown> all = {{"trainer", "init"}, {"trainer", "loader"}};
  for (const OptionKey& key : trainer_keys(builtins()).keys()) {
    if (!key.nested.empty()) {
      all.push_back({"trainer", key.name});
    }
  }
  for (const RunSection& section : run_sections()) {
    all.push_back({"trainer", section.name});
  }
  return all;
}

/// They want a program that sends samples, a database, and servers.
bool trains_here(const std::string& name) {
  static const std::set<std::string> others = {
      "SocketStream", "SampleRing", "LmdbRecords", "NotifyMail", "NotifyWebhook"};
  return others.count(name) == 0;
}

constexpr const char* kRun = R"([trainer.init]
seed       = 1
loop       = { max_steps = 4, eval_frequency = 2 }
checkpoint = { steps = 2 }
loggers    = [{ ProgressLogger = false }]
[trainer.init.optimizer.SGD]
lr = 0.01
)";

/// What an example needs besides: a model and data that fit it.
const std::map<std::string, std::string> kModelAndData = {{"glyphs", R"([trainer.init.model]
name = "Mlp"
sizes = [784, 16, 10]
[trainer.fit]
train_dataloader = { label = "train", dataset = "Glyphs", size = 48, batch_size = 16 }
val_dataloader = [{ label = "val", dataset = "Glyphs", size = 16, batch_size = 16 }]
)"},
                                                          {"images", R"([trainer.init.model]
name = "ResNet"
blocks = 1
width = 16
[trainer.fit]
train_dataloader = { label = "train", dataset = "CifarBinary", batch_size = 4 }
)"},
                                                          {"text", R"([trainer.init.model]
name = "Gpt"
layers = 1
heads = 2
width = 16
[trainer.fit]
train_dataloader = { label = "train", dataset = "TextTokens", batch_size = 4 }
val_dataloader = [{ label = "val", dataset = "TextTokens", batch_size = 4, first_samples = 8 }]
)"},
                                                          {"words", R"([trainer.init.model]
name = "Gpt"
layers = 1
heads = 2
width = 16
vocabulary = "auto"
[trainer.fit]
train_dataloader = { label = "train", dataset = "TokenizedText", batch_size = 4 }
)"},
                                                          {"masks", R"([trainer.init.model]
name = "UNet"
classes = 4
width = 8
depth = 1
norm = "group"
[trainer.fit]
train_dataloader = { label = "train", dataset = "Shapes", size = 16, batch_size = 4 }
val_dataloader = [{ label = "val", dataset = "Shapes", size = 8, batch_size = 4 }]
)"},
                                                          {"series", R"([trainer.init.model]
name = "Forecaster"
horizon = 8
[trainer.fit]
train_dataloader = { label = "train", dataset = "Waves", size = 32, batch_size = 8 }
val_dataloader = [{ label = "val", dataset = "Waves", size = 8, batch_size = 8 }]
)"},
                                                          {"table", R"([trainer.init.model]
name = "TableMlp"
[trainer.fit]
train_dataloader = { label = "train", dataset = "CsvTable", file = "flowers.csv", label_column = "species", label_type = "category", batch_size = 16 }
)"},
                                                          {"shares", R"([trainer.init.model]
name = "Mlp"
sizes = [784, 10]
[trainer.fit.train_dataloader]
dataset = "ArrayFiles"
arrays = { image = "images.npy", label = { file = "labels.safetensors", entry = "shares" } }
batch_size = 16
)"},
                                                          {"sounds", R"([trainer.init.model]
name = "Mlp"
sizes = [960, 2]
input = "audio"
[trainer.fit.train_dataloader]
dataset = "Glyphs"
)"},
                                                          {"script", R"([trainer.init.model]
name = "ScriptModel"
path = "model.ts"
[trainer.fit.train_dataloader]
dataset = "Glyphs"
size = 48
batch_size = 16
)"}};

/// Families whose parts are not of the recorded step; its other tests record them.
const std::set<std::string> kEager = {"dataset", "optimizer", "scheduler", "metric", "logger"};
constexpr const char* kAsWritten = "[trainer.init.backend]\nmode = \"eager\"\n";

/// Which of them, where it is not "glyphs".
const std::map<std::string, std::string> kOther = {{"ResNet", "images"},
                                                   {"DeepResNet", "images"},
                                                   {"MobileNet", "images"},
                                                   {"Vit", "images"},
                                                   {"CifarBinary", "images"},
                                                   {"ColOut", "images"},
                                                   {"BlurPool", "images"},
                                                   {"ProgressiveResizing", "images"},
                                                   {"SqueezeExcite", "images"},
                                                   {"GhostBatchNorm", "images"},
                                                   {"StochasticDepth", "images"},
                                                   {"WeightStandardization", "images"},
                                                   {"Gpt", "text"},
                                                   {"Lstm", "text"},
                                                   {"Gru", "text"},
                                                   {"TextTokens", "text"},
                                                   {"TokenBin", "text"},
                                                   {"TokenizedText", "words"},
                                                   {"SampleText", "text"},
                                                   {"Perplexity", "text"},
                                                   {"BitsPerByte", "text"},
                                                   {"SeqLengthWarmup", "text"},
                                                   {"LowPrecisionLayerNorm", "text"},
                                                   {"UNet", "masks"},
                                                   {"Dice", "masks"},
                                                   {"IoU", "masks"},
                                                   {"Shapes", "masks"},
                                                   {"LowPrecisionGroupNorm", "masks"},
                                                   {"Forecaster", "series"},
                                                   {"MSE", "series"},
                                                   {"L1", "series"},
                                                   {"MAE", "series"},
                                                   {"Huber", "series"},
                                                   {"Quantile", "series"},
                                                   {"Waves", "series"},
                                                   {"MeanSquaredError", "series"},
                                                   {"RootMeanSquaredError", "series"},
                                                   {"MeanAbsoluteError", "series"},
                                                   {"R2", "series"},
                                                   {"TableMlp", "table"},
                                                   {"CsvTable", "table"},
                                                   {"Windows", "table"},
                                                   {"KL", "shares"},
                                                   {"AudioFolder", "sounds"},
                                                   {"ScriptModel", "script"},
                                                   {"SaveScript", "script"}};

/// Files of the examples, where they are looked for; the current directory meanwhile.
class ExampleFolder {
 public:
  ExampleFolder() : before_(fs::current_path()), data_("RONDO_DATA", dir_.path().c_str()) {
    write_example_data(dir_.path());
    fs::current_path(dir_.path());
  }

  ExampleFolder(const ExampleFolder&) = delete;
  ExampleFolder& operator=(const ExampleFolder&) = delete;

  ~ExampleFolder() { fs::current_path(before_); }

 private:
  fs::path before_;
  TempDir dir_;
  ScopedEnvironment data_;
};

/// The run of an example in its model directory.
RunConfig run_of(const Shown& shown, const std::vector<std::string>& under) {
  ConfigTable table;
  for (const std::string& text : under) {
    overlay(table, *parse_toml(text, "under").get_if<ConfigTable>());
  }
  const std::string model_dir = "runs/" + shown.family + "/" + shown.name;
  overlay(table,
          *parse_toml("[trainer.init]\nmodel_dir = \"" + model_dir + "\"", "dir")
               .get_if<ConfigTable>());
  overlay(table,
          *parse_toml(example_of(shown.family, shown.name), shown.name).get_if<ConfigTable>());
  RunConfig run = read_run_config(ConfigValue(std::move(table)), builtins());
  resolve_auto(run, builtins());
  return run;
}

RunConfig run_of(const Shown& shown) {
  const auto other = kOther.find(shown.name);
  return run_of(shown,
                {kRun,
                 kModelAndData.at(other == kOther.end() ? "glyphs" : other->second),
                 kEager.count(shown.family) > 0 ? kAsWritten : ""});
}

void train(const Shown& shown) {
  RunConfig run = run_of(shown);
  std::vector<std::string> warnings;
  Trainer trainer(run.init, quiet_log(&warnings));
  trainer.fit(run.fit->train, run.fit->val);
  CHECK(trainer.state().timestamp.update > 0);
}

}  // namespace

TEST_SUITE_BEGIN("docs/reference");

TEST_CASE("the pages are those that `rondo describe --write=docs/reference` writes") {
  const std::map<std::string, std::string> pages = reference_pages(builtins());
  for (const auto& [name, text] : pages) {
    const fs::path page = fs::path("docs/reference") / name;
    CAPTURE(page);
    const bool is_current = fs::exists(kSource / page) && read_page(page) == text;
    CHECK_MESSAGE(is_current, "run `rondo describe --write=docs/reference`");
  }
  for (const auto& entry : fs::directory_iterator(kSource / "docs/reference")) {
    CHECK_MESSAGE(pages.count(entry.path().filename()) == 1, "nothing writes " << entry.path());
  }
}

TEST_CASE("the pages do not depend on the libraries that rondo was built with") {
  for (const auto& [name, text] : reference_pages(builtins())) {
    CAPTURE(name);
    CHECK_FALSE(contains(text, "is not built:"));
  }
}

TEST_CASE("each component and each table of a run file has an example") {
  for (const std::vector<Shown>& all : {components(), sections()}) {
    for (const Shown& shown : all) {
      const std::string text = example_of(shown.family, shown.name);
      CHECK_MESSAGE(!text.empty(), "add " << shown.name << " to cli/component_examples.cpp");
      CHECK(contains(text, shown.family == "trainer" ? "[trainer." : shown.name));
    }
  }
}

TEST_CASE("the example of each component trains") {
  const ExampleFolder folder;
  for (const Shown& shown : components()) {
    CAPTURE(shown.family);
    CAPTURE(shown.name);
    try {
      if (trains_here(shown.name)) {
        train(shown);
      } else {
        run_of(shown);
      }
    } catch (const std::exception&) {
      const std::string error = describe(std::current_exception());
      CHECK_MESSAGE(says_library_is_missing(error), error);
    }
  }
}

TEST_CASE("the examples of tables and sections run, on what the first of them trained") {
  const ExampleFolder folder;
  for (const Shown& shown : sections()) {
    CAPTURE(shown.name);
    const bool is_first = shown.name == "init";
    const RunConfig run = is_first ? run_of(shown)
                                   : run_of(shown,
                                            {kRun,
                                             kModelAndData.at("glyphs"),
                                             "[trainer.init.model]\nname = \"Mlp\"\nsizes = [784, "
                                             "256, 10]\n",
                                             "[trainer.init.optimizer.AdamW]\nlr = 1e-3\n"});
    Trainer trainer(run.init, quiet_log());
    if (run.validate) {
      CHECK(trainer.validate(run.validate->loader, run.validate->from).number("val/loss"));
    } else if (run.validate_all) {
      const ValidationTable table =
          trainer.validate_all(run.validate_all->loaders, *run.validate_all->checkpoints);
      CHECK(table.rows.size() >= 1);
    } else if (run.predict) {
      CHECK_FALSE(predict(trainer, run.predict->loader, run.predict->options).items().empty());
    } else {
      trainer.fit(run.fit->train, run.fit->val);
    }
  }
}

TEST_SUITE_END();
