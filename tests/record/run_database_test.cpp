#include "record/run_database.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("record/run_database");

namespace {

RunRecord done_run() {
  RunRecord run;
  run.name = "a";
  run.directory = "runs/a";
  run.status = RunStatus::Done;
  run.step = 20;
  run.config["trainer.init.seed"] = "1";
  run.metrics["loss"] = {{10, 1.0, 0.5}, {20, 2.0, std::nan("")}};
  run.metrics["val/loss"] = {{10, 1.5, 0.75}, {20, 2.5, 0.25}};
  run.saves.push_back({20, 2.0, "checkpoint_20.pt"});
  run.validations = {{10, 1.5, "val"}, {20, 2.5, "val"}};
  run.alerts.push_back({20, 2.0, "warn", "it's high"});
  return run;
}

/// Queries cannot be made where rondo was built without SQLite.
bool has_sqlite() {
  try {
    query_runs({}, "select 1");
    return true;
  } catch (const UsageError& error) {
    const std::string what = error.what();
    REQUIRE(what.find("RONDO_WITH_SQLITE") != std::string::npos);
    return false;
  }
}

std::string first_text(const std::string& sql) {
  return std::get<std::string>(query_runs({done_run()}, sql).rows.at(0).at(0));
}

double first_number(const std::string& sql) {
  return std::get<double>(query_runs({done_run()}, sql).rows.at(0).at(0));
}

}  // namespace

TEST_CASE("every table can be queried") {
  if (!has_sqlite()) {
    return;
  }
  CHECK(first_text("select status from runs") == "done");
  CHECK(first_text("select value from config where key like '%seed'") == "1");
  CHECK(first_number("select min(value) from metrics where name = 'loss'") == 0.5);
  CHECK(first_text("select path from checkpoints") == "checkpoint_20.pt");
  CHECK(first_number("select value from validations where label = 'val' and step = 20") == 0.25);
  CHECK(first_text("select text from alerts") == "it's high");
  const QueryAnswer answer =
      query_runs({done_run(), done_run()}, "select step, value from metrics order by 1");
  CHECK(answer.names == std::vector<std::string>{"step", "value"});
  CHECK(answer.rows.size() == 8);
  const QueryAnswer nan = query_runs({done_run()}, "select value from metrics where step = 20");
  CHECK(std::holds_alternative<std::monostate>(nan.rows.at(0).at(0)));
}

TEST_CASE("only one select statement is answered") {
  if (!has_sqlite()) {
    return;
  }
  const TempDir dir;
  const std::string attach = "attach '" + (dir / "x.db").string() + "' as x";
  for (const std::string& sql : {std::string("drop table runs"),
                                 std::string("select 1; select 2"),
                                 std::string(""),
                                 std::string("selec"),
                                 std::string("select * from nothing"),
                                 attach}) {
    CAPTURE(sql);
    CHECK_THROWS_AS(query_runs({done_run()}, sql), UsageError);
  }
  CHECK_FALSE(std::filesystem::exists(dir / "x.db"));
}

TEST_CASE("the tables are saved as an SQLite file, in the place of an older one") {
  if (!has_sqlite()) {
    return;
  }
  const TempDir dir;
  const std::filesystem::path file = dir / "runs.db";
  std::ofstream(file) << "no database";
  save_runs({done_run()}, file);
  std::ifstream saved(file, std::ios::binary);
  std::string magic(15, ' ');
  saved.read(magic.data(), 15);
  CHECK(magic == "SQLite format 3");
  CHECK_FALSE(std::filesystem::exists(dir / "runs.db.tmp"));
  CHECK_THROWS_AS(save_runs({done_run()}, dir / "missing" / "runs.db"), DataError);
}

TEST_SUITE_END();
