#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/run_here.h"
#include "core/file_system.h"
#include "support/glyphs_run.h"
#include "support/temp_dir.h"

TEST_SUITE_BEGIN("cli/data_command");

using namespace rondo;
using rondo::test::Answer;
using rondo::test::glyphs_toml;
using rondo::test::run_here;
using rondo::test::TempDir;

namespace {

bool holds(const Answer& answer, const std::string& part) {
  return answer.out.find(part) != std::string::npos;
}

std::string write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

/// A run over a table that has as many rows as its validation has.
std::string table_run(const TempDir& dir, const std::string& train, const std::string& val) {
  write(dir / "train.csv", train);
  write(dir / "val.csv", val);
  const std::string data = "dataset = \"CsvTable\", label_type = \"category\", file";
  return write(dir / "run.toml",
               fmt::format("[trainer.init]\nmodel_dir = \"{0}/run\"\n"
                           "model = {{ name = \"TableMlp\" }}\n"
                           "optimizer = {{ AdamW = {{ lr = 1e-2 }} }}\n"
                           "loop = {{ max_steps = 1 }}\n[trainer.fit]\n"
                           "train_dataloader = {{ {1} = \"{0}/train.csv\" }}\n"
                           "val_dataloader = {{ {1} = \"{0}/val.csv\", label = \"val\" }}\n",
                           dir.path().string(),
                           data));
}

}  // namespace

TEST_CASE("data show prints statistics, class counts, samples and pictures, and writes a PNG") {
  const TempDir dir;
  const std::string config = write(dir / "run.toml", glyphs_toml(dir / "run"));
  const std::string png = (dir / "grid.png").string();
  const Answer answer = run_here({"data", "show", config, "--samples=20", "--png", png});
  CHECK(answer.code == 0);
  for (const char* part : {"Glyphs", "image", "float32", "[1, 28, 28]", "int64", "sample 0"}) {
    CAPTURE(part);
    CHECK(holds(answer, part));
  }
  CHECK(real_file_system()->read(png).rfind("\x89PNG", 0) == 0);
  CHECK_FALSE(std::filesystem::exists(dir / "run"));
}

TEST_CASE("data show of a table names columns and classes; --json says the same on one line") {
  const TempDir dir;
  const std::string config = table_run(dir, "x,label\n1.5,cat\n3.5,dog\n", "x,label\n7,dog\n");
  const Answer answer = run_here({"data", "show", config});
  CHECK(answer.code == 0);
  CHECK(holds(answer, "cat"));
  CHECK(holds(answer, "50.0%"));
  const Answer json = run_here({"data", "show", config, "--json"});
  CHECK(json.code == 0);
  CHECK(holds(json, R"("columns": [{"name": "x", "least": 1.5, "most": 3.5, "mean": 2.5)"));
  CHECK(holds(json, R"({"name": "dog", "samples": 1})"));
  CHECK(json.out.find('\n') == json.out.size() - 1);
  CHECK(run_here({"data", "show", config, "--png", (dir / "a.png").string()}).code == 2);
}

TEST_CASE("data check ends with 0 when nothing is found, and with 1 naming what is") {
  const TempDir dir;
  const std::string sound = table_run(dir, "x,y,label\n1,4,cat\n3,2,dog\n", "x,y,label\n7,9,dog\n");
  const Answer nothing = run_here({"data", "check", sound});
  CHECK(nothing.code == 0);
  CHECK(holds(nothing, "nothing found"));
  const std::string wrong = table_run(dir, "x,y,label\n1,4,cat\n3,4,dog\n", "x,y,label\n3,4,cat\n");
  const Answer found = run_here({"data", "check", wrong});
  CHECK(found.code == 1);
  CHECK(holds(found, "sample 0 is sample 1"));
  const Answer json = run_here({"data", "check", wrong, "--json"});
  CHECK(json.code == 1);
  CHECK(holds(json, R"("samples": {"train": 2, "val": 1})"));
  CHECK(holds(json, R"("kind": "duplicate", "loader": "val")"));
  CHECK(holds(json, R"("kind": "constant_column", "loader": "train")"));
}

TEST_CASE("a file without data, and a wrong action, end with 2") {
  const TempDir dir;
  const std::string config = table_run(dir, "x,label\n1,cat\n", "x,label\n7,cat\n");
  CHECK(run_here({"data", "look", config}).code == 2);
  CHECK(run_here({"data", "check", config, "trainer.fit.train_dataloader.fille=1"}).code == 2);
}

TEST_SUITE_END();
