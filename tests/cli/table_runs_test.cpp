// Runs over tables as people have them, from TOML: what training learnt of its data goes along.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_file.h"
#include "cli/lines_of.h"
#include "cli/metric_of.h"
#include "cli/run_here.h"
#include "core/file_system.h"
#include "data/tables/csv_table.h"
#include "models/builtin/table_mlp.h"
#include "optim/adam.h"
#include "support/contains.h"
#include "support/python.h"
#include "support/temp_dir.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("cli/table_runs");

namespace {

/// The tables that tests/data/make_tables.py makes, in the folder `tables` of a directory.
bool makes_tables(const TempDir& dir) {
  const std::string command = fmt::format("{} {}/tests/data/make_tables.py {}/tables",
                                          python_with("random"),
                                          RONDO_SOURCE_DIR,
                                          dir.path().string());
  return std::system(command.c_str()) == 0;
}

/// A recipe over these tables, with its run in the directory too.
std::vector<std::string> recipe(const char* command, const char* name, const TempDir& dir) {
  const std::string data = dir.path().string();
  return {command,
          fmt::format("{}/configs/recipes/{}", RONDO_SOURCE_DIR, name),
          "--json",
          "-o",
          (dir / "run").string(),
          "trainer.init.loggers=[{ ProgressLogger = false }]",
          fmt::format("trainer.fit.train_dataloader.data_dir={}", data),
          fmt::format("trainer.fit.val_dataloader[0].data_dir={}", data)};
}

std::string write_file(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

/// A run of a TableMlp over `train`, which validates with `val`; both are keys of a CsvTable.
std::string run_file(const TempDir& dir, const std::string& train, const std::string& val) {
  return write_file(
      dir / "run.toml",
      fmt::format("[trainer.init]\n"
                  "model_dir = \"{0}/run\"\n"
                  "seed = 1\n"
                  "model = {{ name = \"TableMlp\", hidden = [16, 16] }}\n"
                  "loop = {{ max_steps = 300, eval_frequency = 100 }}\n"
                  "loggers = [{{ ProgressLogger = false }}]\n"
                  "optimizer = {{ AdamW = {{ lr = 1e-2 }} }}\n"
                  "[trainer.fit]\n"
                  "train_dataloader = {{ dataset = \"CsvTable\", {1}, batch_size = 16, "
                  "shuffle = true }}\n"
                  "val_dataloader = {{ label = \"val\", dataset = \"CsvTable\", {2}, "
                  "batch_size = 50 }}\n"
                  "[trainer.predict]\n"
                  "dataloader = \"val\"\n",
                  dir.path().string(),
                  train,
                  val));
}

}  // namespace

TEST_CASE("a table with words, missing cells and class names trains, validates and predicts") {
  if (skips_without("random")) {
    return;
  }
  const TempDir dir;
  REQUIRE(makes_tables(dir));
  const char* const name = "table_classification.toml";
  const Answer fit = run_here(recipe("fit", name, dir));
  REQUIRE(fit.code == 0);
  CHECK(metric_of(fit, "val/accuracy") > 0.75);

  const StateDict saved = read_checkpoint(dir / "run/checkpoint_400.pt");
  const StateDict& fitted = saved.at("dataloader/train/fitted").as_dict();
  CHECK(fitted.at("label/words").as_list().at(1).as_string() == "yes");
  const std::string resolved =
      real_file_system()->read(dir / "run/logs/latest/trainer_params.toml");
  CHECK(contains(resolved, "features = 3"));  // age, fare, day
  CHECK(contains(resolved, "classes = 2"));
  CHECK(!contains(resolved, "features = \"auto\""));
  const std::string log = real_file_system()->read(dir / "run/logs/latest/run.log");
  CHECK(contains(log, "separator ';', decimal comma"));
  CHECK(contains(log, "Latin-1"));

  const Answer validated = run_here(recipe("validate", name, dir));
  CHECK(validated.code == 0);
  CHECK(metric_of(validated, "val/accuracy") == doctest::Approx(metric_of(fit, "val/accuracy")));
  CHECK(run_here(recipe("predict", name, dir)).code == 0);
  const auto lines = lines_of(dir / "run/logs/latest/predictions.csv");
  REQUIRE(lines.size() == 81);
  CHECK(lines[0] == "id,prediction,p_no,p_yes");
  CHECK((contains(lines[1], ",yes,") || contains(lines[1], ",no,")));
}

TEST_CASE("values are predicted in the units of the data") {
  if (skips_without("random")) {
    return;
  }
  const TempDir dir;
  REQUIRE(makes_tables(dir));
  const char* const name = "table_regression.toml";
  const Answer fit = run_here(recipe("fit", name, dir));
  REQUIRE(fit.code == 0);
  CHECK(metric_of(fit, "val/mean_squared_error") < 0.1);  // of the variance
  CHECK(run_here(recipe("predict", name, dir)).code == 0);
  const auto lines = lines_of(dir / "run/logs/latest/predictions.csv");
  REQUIRE(lines.size() == 81);
  CHECK(lines[0] == "id,price");
  const double price = std::atof(lines[1].c_str() + lines[1].find(',') + 1);
  CHECK(price > 5e4);
  CHECK(price < 2e6);
}

TEST_CASE("a resumed run takes what was learnt from the checkpoint, and ends with the same bits") {
  if (skips_without("random")) {
    return;
  }
  const TempDir dir;
  REQUIRE(makes_tables(dir));
  const auto trained = [&](const std::vector<int>& stops, const char* mode) {
    fs::remove_all(dir / "run");
    for (const int stop : stops) {
      auto arguments = recipe("fit", "table_classification.toml", dir);
      arguments.push_back(fmt::format("trainer.init.loop.max_steps={}", stop));
      arguments.push_back(fmt::format("trainer.init.backend.mode={}", mode));
      CHECK(run_here(arguments).code == 0);
    }
    return read_checkpoint(dir / fmt::format("run/checkpoint_{}.pt", stops.back()).c_str())
        .at("model")
        .as_dict();
  };
  const StateDict whole = trained({40}, "traced");
  CHECK(first_difference(whole, trained({17, 40}, "traced")) == "");
  CHECK(first_difference(whole, trained({40}, "eager")) == "");
}

TEST_CASE("from C++ the model is built from facts, and 40 traced updates equal 40 eager ones") {
  const TempDir dir;
  std::string text = "a,b,word,label,weight\n";
  for (int i = 0; i < 50; ++i) {
    text +=
        fmt::format("{},{},{},{},{}\n", i % 7, i * i % 11, "xyz"[i % 3], i % 5 * i % 3, 1 + i % 2);
  }
  write_file(dir / "t.csv", text);
  const auto trained = [&](const char* mode, const char* dtype, bool is_regression) {
    CsvTable::Options table{(dir / "t.csv").string()};
    table.label_type = is_regression ? "value" : "class";
    table.weight_column = "weight";
    table.scale = "standard";
    LoaderOptions batches;
    batches.batch_size = 8;
    batches.shuffle = true;
    const DataLoader train("train", use<CsvTable>(table), batches);
    TrainerOptions options;
    options.model_dir = dir / "run";
    options.seed = 3;
    options.model = use<TableMlp>(train.facts());
    options.optimizer = use<AdamW>({1e-3});
    options.backend.mode = mode;
    options.precision.dtype = dtype;
    options.loop.max_steps = 40;
    options.loop.grad_accum_steps = 2;
    options.checkpoint.autoload_last_checkpoint = false;
    Trainer trainer(options, TextLog(LogLevel::Error));
    trainer.fit(train);
    return read_checkpoint(dir / "run/checkpoint_40.pt").at("model").as_dict();
  };
  for (const char* dtype : {"fp32", "bf16"}) {
    for (const bool is_regression : {false, true}) {
      CAPTURE(std::string(dtype));
      CAPTURE(is_regression);
      CHECK(first_difference(trained("eager", dtype, is_regression),
                             trained("traced", dtype, is_regression)) == "");
    }
  }
}

TEST_CASE("a checkpoint's words, means and classes hold for other files of the run") {
  const TempDir dir;
  std::string train = "a,b,label\n";
  std::string val = "b,a,label\n";
  for (int i = 0; i < 60; ++i) {
    const int a = i * 7 % 13;
    train += fmt::format("{},{},{}\n", a, i % 2 == 0 ? "left" : "right", a > 6 ? "up" : "down");
    val += fmt::format("{},{},{}\n", i % 2 == 0 ? "right" : "new", a, a > 6 ? "up" : "down");
  }
  const std::string file = run_file(
      dir,
      fmt::format("file = \"{}\", scale = \"standard\"", write_file(dir / "train.csv", train)),
      fmt::format("file = \"{}\"", write_file(dir / "val.csv", val)));
  const Answer fit = run_here({"fit", file, "--json"});
  REQUIRE(fit.code == 0);
  CHECK(metric_of(fit, "val/accuracy") > 0.9);
  // the training data is not looked at by predictions
  write_file(dir / "train.csv", "other,columns\n1,2\n3,4\n");
  write_file(dir / "val.csv", "b,a\nleft,12\nleft,0\n");
  CHECK(run_here(
            {"predict",
             file,
             "trainer.predict.dataloader={dataset = \"CsvTable\", label_column = \"\", file = \"" +
                 (dir / "val.csv").string() + "\", batch_size = 8}"})
            .code == 0);
  const auto lines = lines_of(dir / "run/logs/latest/predictions.csv");
  REQUIRE(lines.size() == 3);
  CHECK(contains(lines[1], "0,up,"));
  CHECK(contains(lines[2], "1,down,"));
}

TEST_CASE("validation data with other columns ends the run before its first update") {
  const TempDir dir;
  std::string train = "a,b,label\n";
  for (int i = 0; i < 20; ++i) {
    train += fmt::format("{},{},{}\n", i % 7, i, i % 2);
  }
  const std::string file =
      run_file(dir,
               fmt::format("file = \"{}\"", write_file(dir / "train.csv", train)),
               fmt::format("file = \"{}\"", write_file(dir / "val.csv", "a,c,label\n1,2,0\n")));
  std::ostringstream caught;
  std::streambuf* const before = std::cerr.rdbuf(caught.rdbuf());
  const int code = run_here({"fit", file}).code;
  std::cerr.rdbuf(before);
  CHECK(code == 1);
  CHECK_MESSAGE(contains(caught.str(), "lacks [\"b\"]"), caught.str());
  CHECK(!fs::exists(dir / "run/checkpoint_300.pt"));
}

TEST_CASE("a file that has changed since it was split is refused by predictions and resumed runs") {
  const TempDir dir;
  std::string rows = "a,b,label\n";
  for (int i = 0; i < 40; ++i) {
    rows += fmt::format("{},{},{}\n", i * 7 % 13, i, i % 2);
  }
  const std::string path = write_file(dir / "t.csv", rows);
  const auto keys = [&](const char* part) {
    return fmt::format("file = \"{}\", split = {{ part = \"{}\", val = 0.2 }}", path, part);
  };
  const std::string file = run_file(dir, keys("train"), keys("val"));
  REQUIRE(run_here({"fit", file, "--json"}).code == 0);
  REQUIRE(run_here({"predict", file}).code == 0);
  const auto lines = lines_of(dir / "run/logs/latest/predictions.csv");
  REQUIRE(lines.size() == 9);
  CHECK(std::atoi(lines.back().c_str()) > 8);  // the rows of the file, not those of the part
  write_file(path, rows + "1,2,0\n");
  const std::vector<std::vector<std::string>> commands = {
      {"predict", file}, {"fit", file, "trainer.init.loop.max_steps=310"}};
  for (const std::vector<std::string>& command : commands) {
    std::ostringstream caught;
    std::streambuf* const before = std::cerr.rdbuf(caught.rdbuf());
    const int code = run_here(command).code;
    std::cerr.rdbuf(before);
    CHECK(code == 1);
    CHECK_MESSAGE(contains(caught.str(), "from 40 rows, now it is drawn from 41"), caught.str());
  }
}

TEST_CASE("an option that is \"auto\" and a fact that the data does not know are named") {
  const TempDir dir;
  const std::string file = write_file(
      dir / "run.toml",
      fmt::format("[trainer.init]\nmodel_dir = \"{}/run\"\nmodel = {{ name = \"TableMlp\" }}\n"
                  "optimizer = {{ AdamW = {{ lr = 1e-2 }} }}\nloop = {{ max_steps = 2 }}\n"
                  "[trainer.fit]\ntrain_dataloader = {{ dataset = \"Glyphs\", size = 16 }}\n",
                  dir.path().string()));
  std::ostringstream caught;
  std::streambuf* const before = std::cerr.rdbuf(caught.rdbuf());
  const int code = run_here({"fit", file}).code;
  std::cerr.rdbuf(before);
  CHECK(code == 2);
  CHECK_MESSAGE(contains(caught.str(), "features is \"auto\""), caught.str());
  CHECK_MESSAGE(contains(caught.str(), "run.toml:3"), caught.str());
}

TEST_CASE("the tables of scikit-learn train, where that is installed") {
  fs::path data = "/usr/lib/python3/dist-packages/sklearn/datasets/data";
  if (const char* const own = std::getenv("RONDO_DATA"); own != nullptr && !fs::exists(data)) {
    data = fs::path(own) / "sklearn";
  }
  if (!fs::exists(data)) {
    MESSAGE("skipped: python3-sklearn is not installed");
    return;
  }

  struct Table {
    const char* file;
    const char* keys;
    const char* metric;
    double least;
    double most;
  };

  const char* const kLast = "label_column = \"-1\", ";
  const Table tables[] = {
      {"iris.csv", kLast, "val/accuracy", 0.9, 1.0},
      {"breast_cancer.csv", kLast, "val/accuracy", 0.9, 1.0},
      {"wine_data.csv", kLast, "val/accuracy", 0.9, 1.0},
      {"digits.csv.gz", kLast, "val/accuracy", 0.9, 1.0},
      {"diabetes_data_raw.csv.gz",
       "label_type = \"auto\", target_scale = \"standard\", target_file = "
       "\"diabetes_target.csv.gz\", ",
       "val/mean_squared_error",
       0.2,
       0.9},
  };
  for (const Table& table : tables) {
    CAPTURE(std::string(table.file));
    const TempDir dir;
    const bool is_class = std::string(table.metric) == "val/accuracy";
    const auto keys = [&](const char* part) {
      return fmt::format(
          "data_dir = \"{}\", file = \"{}\", {}scale = \"standard\", split = {{ part = \"{}\", val "
          "= 0.2, by = \"{}\", seed = 1 }}",
          data.string(),
          table.file,
          table.keys,
          part,
          is_class ? "stratified" : "random");
    };
    const Answer fit = run_here({"fit", run_file(dir, keys("train"), keys("val")), "--json"});
    REQUIRE(fit.code == 0);
    CHECK(metric_of(fit, table.metric) >= table.least);
    CHECK(metric_of(fit, table.metric) <= table.most);
  }
}

TEST_SUITE_END();
