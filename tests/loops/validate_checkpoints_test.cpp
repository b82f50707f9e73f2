#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "loops/predict.h"
#include "loops/validate_all.h"
#include "loops/validation_results.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("loops/validate_checkpoints");

namespace {

/// Counts batches of validations.
class CountBatches final : public Callback {
 public:
  struct Options {
    int* batches = nullptr;
    std::function<void(Trainer&)> also = [](Trainer&) {};
  };

  explicit CountBatches(const Options& options) : options_(options) {}

  void on_validate_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) override {
    ++*options_.batches;
    options_.also(trainer);
  }

 private:
  Options options_;
};

std::string content(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

int lines_of(const fs::path& path) {
  const std::string text = content(path);
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

/// A run with checkpoints at 2, 4, 6, 8 and 10, to be validated again and again.
struct Run {
  TempDir dir;
  int batches = 0;
  std::vector<std::string> lines;

  Run() {
    TrainerOptions options = tiny_options(dir / "run");
    options.loop.max_steps = 10;
    options.checkpoint.steps = 2;
    Trainer(options, quiet_log()).fit(tiny_loader("train"));
  }

  TrainerOptions options(const std::string& config = "the config") {
    TrainerOptions options = tiny_options(dir / "run");
    options.config_text = config;
    options.callbacks = {use<CountBatches>({&batches})};
    return options;
  }

  /// Validates with a new Trainer, counting batches (five a checkpoint).
  ValidationTable validate(const ValidateAllOptions& how = {},
                           const std::string& config = "the config") {
    batches = 0;
    lines.clear();
    Trainer trainer(options(config), quiet_log(&lines));
    return trainer.validate_all_indexed({tiny_loader("val")}, how);
  }

  void damage(const char* name) {
    const fs::path path = dir / name;
    fs::resize_file(path, fs::file_size(path) - 10);
  }
};

std::vector<int64_t> steps_of(const ValidationTable& table) {
  std::vector<int64_t> steps;
  for (const ValidationRow& row : table.rows) {
    steps.push_back(row.step);
  }
  return steps;
}

using Steps = std::vector<int64_t>;

void add(const TempDir& dir, const ValidationRow& row) {
  ValidationResults results(dir.path(), {"val"}, "config");
  results.add(row, results.key_of(*row.checkpoint));
}

}  // namespace

TEST_CASE("rows are kept as they come, and known again until something changes") {
  Run run;
  const ValidationTable first = run.validate();
  CHECK(steps_of(first) == Steps{2, 4, 6, 8, 10});
  CHECK(run.batches == 25);
  CHECK(lines_of(run.dir / "run/validate_all.jsonl") == 5);
  CHECK(lines_of(run.dir / "run/validate_all.csv") == 6);

  const ValidationTable again = run.validate();
  CHECK(run.batches == 0);
  CHECK(again.to_csv() == first.to_csv());

  CHECK(steps_of(run.validate({0, 1, /*force=*/true})) == Steps{2, 4, 6, 8, 10});
  CHECK(run.batches == 25);
  CHECK(lines_of(run.dir / "run/validate_all.csv") == 6);  // a row a checkpoint, not one a call
  run.validate({}, "another config");
  CHECK(run.batches == 25);
  CHECK(lines_of(run.dir / "run/validate_all.csv") == 6);
  run.validate({}, "");  // built in code: what it does is not known
  CHECK(run.batches == 25);

  run.validate({}, "another config");
  CHECK(run.batches == 25);
  const fs::path changed = run.dir / "run/checkpoint_4.pt";
  StateDict state = read_checkpoint(changed);
  write_checkpoint(*real_file_system(), changed, state);
  run.validate({}, "another config");
  CHECK(run.batches == 5);
}

TEST_CASE("validate_all with a loop of the caller's takes so many batches, and no earlier row") {
  Run run;
  run.validate();
  run.batches = 0;
  Trainer trainer(run.options(), quiet_log());
  ValidationLoop loop({Time(2)});
  const std::string files = (run.dir / "run/checkpoint_*.pt").string();
  const ValidationTable table = validate_all(trainer, {tiny_loader("val")}, {files}, loop);
  CHECK(steps_of(table) == Steps{2, 4, 6, 8, 10});
  CHECK(run.batches == 2 * 5);
}

TEST_CASE("a results file that was cut short is taken as far as it goes") {
  Run run;
  const ValidationTable first = run.validate();
  const fs::path lines = run.dir / "run/validate_all.jsonl";
  fs::resize_file(lines, fs::file_size(lines) - 20);
  CHECK(run.validate().to_csv() == first.to_csv());
  CHECK(run.batches == 5);
  run.validate();
  CHECK(run.batches == 0);
}

TEST_CASE("filters choose by update") {
  Run run;
  CHECK(steps_of(run.validate({5, 1})) == Steps{6, 8, 10});
  CHECK(steps_of(run.validate({0, 4})) == Steps{4, 8});
  CHECK_THROWS_AS(run.validate({0, 0}), UsageError);
}

TEST_CASE("a file that cannot be read, or does not fit, is told, and the rest go on") {
  Run run;
  run.damage("run/checkpoint_4.pt");
  StateDict other = read_checkpoint(run.dir / "run/checkpoint_8.pt");
  other.find("model")->as_dict().erase("0.bias");
  write_checkpoint(*real_file_system(), run.dir / "run/checkpoint_8.pt", other);
  const ValidationTable table = run.validate();
  CHECK(steps_of(table) == Steps{2, 6, 10});
  REQUIRE(table.skipped.size() == 2);
  CHECK(table.skipped[0].checkpoint.filename() == "checkpoint_4.pt");
  CHECK(table.skipped[1].checkpoint.filename() == "checkpoint_8.pt");
  CHECK(table.skipped[1].reason.find("0.bias") != std::string::npos);
  CHECK(run.lines.size() == 2);
}

TEST_CASE("every row is what its checkpoint alone gives") {
  Run run;
  const ValidationTable table = run.validate();
  for (const ValidationRow& row : table.rows) {
    Trainer trainer(tiny_options(run.dir / "other"), quiet_log());
    const Metrics alone = trainer.validate(tiny_loader("val"), *row.checkpoint);
    CHECK(*row.metrics.number("val/loss") == *alone.number("val/loss"));
  }
}

TEST_CASE(
    "a file with weights alone, as Python saves them, is evaluated under the update of its name") {
  Run run;
  const StateDict state = read_checkpoint(run.dir / "run/checkpoint_8.pt");
  write_checkpoint(
      *real_file_system(), run.dir / "run/weights_9.pt", state.find("model")->as_dict());
  Trainer trainer(run.options(), quiet_log());
  const ValidationTable table =
      trainer.validate_all({tiny_loader("val")}, {(run.dir / "run/*_?.pt").string()});
  CHECK(steps_of(table) == Steps{2, 4, 6, 8, 9});
  CHECK(*table.rows[4].metrics.number("val/loss") == *table.rows[3].metrics.number("val/loss"));
}

TEST_CASE("watching: a file that was first seen half written is evaluated when it is whole") {
  Run run;
  const fs::path late = run.dir / "run/checkpoint_12.pt";
  const fs::path whole = run.dir / "run/checkpoint_10.pt";
  fs::copy_file(whole, late);
  run.damage("run/checkpoint_12.pt");
  TrainerOptions options = run.options();
  bool was_told = false;
  CountBatches::Options callback{&run.batches, [&](Trainer& trainer) {
                                   if (run.batches == 30) {
                                     trainer.request_stop("stopped by the test");
                                   }
                                 }};
  options.callbacks = {use<CountBatches>(callback)};
  Trainer trainer(options, TextLog::to([&](LogLevel level, std::string_view) {
                    if (level == LogLevel::Error && !std::exchange(was_told, true)) {
                      fs::copy_file(whole, late, fs::copy_options::overwrite_existing);
                    }
                  }));
  const ValidationTable table = trainer.validate_all(
      {tiny_loader("val")}, {(run.dir / "run/checkpoint_*.pt").string()}, {0, 1, false, true});
  CHECK(was_told);
  CHECK(run.batches == 30);
  CHECK(table.skipped.empty());
}

TEST_CASE("watching goes on with checkpoints that appear, until the run is stopped") {
  Run run;
  const fs::path late = run.dir / "run/checkpoint_12.pt";
  TrainerOptions options = run.options();
  CountBatches::Options callback{&run.batches, [&](Trainer& trainer) {
                                   if (run.batches == 25) {
                                     fs::copy_file(run.dir / "run/checkpoint_10.pt", late);
                                   } else if (run.batches == 31) {  // the first batch of a 7th
                                     trainer.request_stop("stopped by the test");
                                   } else if (run.batches == 30) {
                                     fs::copy_file(late, run.dir / "run/checkpoint_14.pt");
                                   }
                                 }};
  options.callbacks = {use<CountBatches>(callback)};
  Trainer trainer(options, quiet_log());
  const ValidationTable table = trainer.validate_all(
      {tiny_loader("val")}, {(run.dir / "run/checkpoint_*.pt").string()}, {0, 1, false, true});
  CHECK(table.rows.size() == 6);
  CHECK(fs::equivalent(*table.rows.back().checkpoint, late));
}

TEST_CASE("metrics with odd names and values survive the results file") {
  const TempDir dir;
  std::ofstream(dir / "a.pt") << "x";
  ValidationRow row;
  row.checkpoint = dir / "a.pt";
  row.step = 3;
  row.metrics.set("val/\"odd\"\\ name", 0.1);
  row.metrics.set("val/tiny", 1e-300);
  add(dir, row);
  const auto found = ValidationResults(dir.path(), {"val"}, "config").find(dir / "a.pt");
  REQUIRE(found);
  CHECK(found->step == 3);
  CHECK(*found->metrics.number("val/\"odd\"\\ name") == 0.1);
  CHECK(*found->metrics.number("val/tiny") == 1e-300);
  CHECK_FALSE(ValidationResults(dir.path(), {"test"}, "config").find(dir / "a.pt"));
}

TEST_CASE("a file without an update and a metric that is not finite are known again") {
  const TempDir dir;
  std::ofstream(dir / "best.pt") << "x";
  ValidationRow row;
  row.checkpoint = dir / "best.pt";
  row.step = -1;
  row.metrics.set("val/loss", std::numeric_limits<double>::quiet_NaN());
  add(dir, row);
  const auto found = ValidationResults(dir.path(), {"val"}, "config").find(dir / "best.pt");
  REQUIRE(found);
  CHECK(found->step == -1);
  CHECK(std::isnan(found->metrics.number("val/loss").value_or(0.0)));
}

TEST_CASE("rows that a crash kept out of the CSV file are there when the results are read again") {
  const TempDir dir;
  ValidationResults results(dir.path(), {"val"}, "config");
  for (const char* name : {"checkpoint_1.pt", "checkpoint_2.pt"}) {
    std::ofstream(dir / name) << "x";
    ValidationRow row;
    row.checkpoint = dir / name;
    row.metrics.set("val/loss", 0.5);
    results.add(row, results.key_of(*row.checkpoint));
  }
  const std::string whole = real_file_system()->read(dir / "validate_all.csv");
  fs::resize_file(dir / "validate_all.csv", whole.size() - 20);
  const ValidationResults after_the_crash(dir.path(), {"val"}, "config");
  CHECK(real_file_system()->read(dir / "validate_all.csv") == whole);
  fs::remove(dir / "validate_all.csv");
  const ValidationResults after_a_removal(dir.path(), {"val"}, "config");
  CHECK(real_file_system()->read(dir / "validate_all.csv") == whole);
}

TEST_SUITE_END();
