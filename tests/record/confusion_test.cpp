#include "record/confusion.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "record/run_charts.h"

TEST_SUITE_BEGIN("record/confusion");

using namespace rondo;

TEST_CASE("a confusion matrix is one picture and one table, and no list has its counts") {
  RunRecord run;
  run.metrics["loss"] = {{10, 101, 0.5}};
  for (int label = 0; label < 11; ++label) {
    for (int guess = 0; guess < 11; ++guess) {
      run.metrics["val/confusion/" + std::to_string(label) + "/" + std::to_string(guess)] = {
          {20, 103, label == guess ? 40.0 : 3.0}};
    }
  }
  CHECK(charts_of(run).size() == 1);
  const std::vector<Matrix> matrices = confusions_of(run);
  REQUIRE(matrices.size() == 1);
  CHECK(matrices[0].names.back() == "10");
  CHECK(matrices[0].rows[2][2] == 40.0);
  const std::string summary = summary_of(run);
  CHECK(summary.find("| val/confusion/") == std::string::npos);
  CHECK(summary.find("## val/confusion, update 20") != std::string::npos);
  CHECK(summary.find("\n| 1 | 3 | 40 | 3 |") != std::string::npos);
  const std::string svg = svg_charts(charts_of(run), matrices);
  CHECK(svg.find("val/confusion, update 20: rows are labels") != std::string::npos);
  CHECK(svg.find("viewBox=\"0 0 720 520\"") != std::string::npos);
}

TEST_CASE("only counts of a confusion matrix are taken for such") {
  CHECK(is_confusion("confusion/0/1"));
  CHECK(confusion_name("a/val/confusion/0/1") == "a/val/confusion");
  for (const char* other : {"confusion",
                            "val/confusion",
                            "confusion/0",
                            "val/confusion/0",
                            "my_confusion/0/1",
                            "/",
                            ""}) {
    CAPTURE(std::string(other));
    CHECK_FALSE(is_confusion(other));
  }
}

TEST_SUITE_END();
