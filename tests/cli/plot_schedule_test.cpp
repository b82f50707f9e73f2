#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "cli/count_of.h"
#include "cli/run_here.h"
#include "cli/schedule_chart.h"
#include "core/file_system.h"
#include "support/contains.h"
#include "support/glyphs_run.h"
#include "support/temp_dir.h"

TEST_SUITE_BEGIN("cli/plot_schedule");

using namespace rondo;
using rondo::test::Answer;
using rondo::test::contains;
using rondo::test::count_of;
using rondo::test::glyphs_toml;
using rondo::test::run_here;
using rondo::test::TempDir;

namespace {

std::string write_run(const TempDir& dir, const std::string& schedulers) {
  const std::filesystem::path path = dir / "run.toml";
  std::ofstream(path) << glyphs_toml(dir / "run") << schedulers;
  return path.string();
}

}  // namespace

TEST_CASE("a line falls from the first row to the last one") {
  ScheduleCurve curve{"lr", "LinearLR", TimeUnit::Update, 100.0, {}, ""};
  for (int i = 0; i <= 100; ++i) {
    curve.values.push_back(1.0 - i / 100.0);
  }
  const std::string text = text_chart(curve);
  CHECK(text.rfind("lr: LinearLR, from 1 to 0 over 100ba\n", 0) == 0);
  CHECK(contains(text, "         1 |***"));
  CHECK(contains(text, "         0 |                  "));
  CHECK(contains(text, "100ba\n"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 15);
}

TEST_CASE("a jump goes from one row to another, and a level curve is drawn in the middle") {
  const ScheduleCurve jump{"lr", "StepLR", TimeUnit::Update, 3.0, {1.0, 1.0, 0.0, 0.0}, ""};
  const std::string text = text_chart(jump);
  CHECK(contains(text, "         1 |*****"));
  CHECK(contains(text, "*****\n"));
  const ScheduleCurve level{"lr", "ConstantLR", TimeUnit::Sample, 8.0, {0.5, 0.5}, ""};
  CHECK(count_of(text_chart(level), "*") == 64);
}

TEST_CASE("an SVG has a picture for each curve, and its text is escaped") {
  const ScheduleCurve curve{"lr of a<b&c", "LinearLR", TimeUnit::Update, 1.0, {1.0, 0.0}, ""};
  const std::string svg = svg_chart({curve, curve});
  CHECK(svg.rfind("<svg ", 0) == 0);
  CHECK(count_of(svg, "<polyline points=\"80,40 600,200\"/>") == 1);
  CHECK(count_of(svg, "<polyline ") == 2);
  CHECK(contains(svg, "lr of a&lt;b&amp;c"));
  CHECK(svg.substr(svg.size() - 7) == "</svg>\n");
}

TEST_CASE("plot-schedule draws each schedule of a run, trains nothing, and writes a picture") {
  const TempDir dir;
  const std::string config = write_run(dir, R"(
[[trainer.init.schedulers]]
CosineDecayLR = { initial_learning_rate = 0.5, end_learning_rate = 0.1, total_iters = 10 }
[[trainer.init.schedulers]]
ReduceLROnPlateau = { initial_learning_rate = 0.9, metric = "val/loss", param_group_key = "weight_decay" }
)");
  const std::string svg = (dir / "lr.svg").string();
  const Answer answer =
      run_here({"plot-schedule", config, "trainer.init.loop.max_steps=20", "--svg", svg});
  CHECK(answer.code == 0);
  CHECK(contains(answer.out, "lr: CosineDecayLR, from 0.5 to 0.1 over 20ba"));
  CHECK(contains(answer.out, "weight_decay: ReduceLROnPlateau"));
  CHECK(contains(answer.out, "val/loss"));
  CHECK(count_of(real_file_system()->read(svg), "<polyline ") == 2);
  CHECK_FALSE(std::filesystem::exists(dir / "run"));
}

TEST_CASE("a relative schedule is drawn for each group that it drives, and a ratio shortens it") {
  const TempDir dir;
  const std::string config = write_run(dir, R"(
[[trainer.init.schedulers]]
LinearLR = { initial_learning_rate = 1.0, relative = true }
)");
  const Answer answer = run_here({"plot-schedule",
                                  config,
                                  "trainer.init.loop.max_steps=20",
                                  "trainer.init.loop.scale_schedule_ratio=0.5"});
  CHECK(answer.code == 0);
  CHECK(contains(answer.out, "over 10ba"));
  CHECK(contains(answer.out, "lr of group 0: LinearLR"));
}

TEST_CASE("a run without schedules has nothing to draw") {
  const TempDir dir;
  CHECK(run_here({"plot-schedule", write_run(dir, "")}).code != 0);
}

TEST_SUITE_END();
