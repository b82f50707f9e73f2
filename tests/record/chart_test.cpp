#include "record/chart.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

TEST_SUITE_BEGIN("record/chart");

using namespace rondo;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

TEST_CASE("a rising line goes from the lower left to the upper right") {
  const std::string text =
      braille_chart("loss", {{"run", {0, 1, 2, 3}, {1, 2, 3, 4}}}, {20, 4}, false);
  const std::vector<std::string> lines = lines_of(text);
  REQUIRE(lines.size() == 8);
  CHECK(lines[0] == "loss");
  CHECK(lines[1] == "         4 │      ⡠⠊");
  CHECK(lines[2] == "           │    ⡠⠊");
  CHECK(lines[3] == "           │  ⡠⠊");
  CHECK(lines[4] == "         1 │⡠⠊");
  CHECK(lines[5] == "           └────────");
  CHECK(lines[6] == "            0      3");
  CHECK(lines[7] == "            - run 4");
}

TEST_CASE("a level line is drawn in the middle, and one point alone is seen") {
  const auto level = lines_of(braille_chart("a", {{"run", {0, 9}, {5, 5}}}, {20, 3}, false));
  CHECK(level[2] == "           │⠒⠒⠒⠒⠒⠒⠒⠒");
  const auto point = lines_of(braille_chart("a", {{"run", {7}, {5}}}, {20, 3}, false));
  CHECK(point[2].find("│") != std::string::npos);
  CHECK(point[2] != "           │");
}

TEST_CASE("values that are not finite leave a gap and take no part in the scale") {
  const double infinite = HUGE_VAL;
  const auto lines = lines_of(
      braille_chart("a", {{"run", {0, 1, 2, 3}, {1, infinite, std::nan(""), 2}}}, {20, 2}, false));
  CHECK(lines[1].rfind("         2 │", 0) == 0);
  CHECK(lines[2].rfind("         1 │", 0) == 0);
  CHECK(braille_chart("a", {{"run", {0}, {infinite}}}, {20, 2}, false) == "a: no values\n");
  CHECK(braille_chart("a", {}, {20, 2}, false) == "a: no values\n");
}

TEST_CASE("a picture has a path for each line, and names that cannot be taken for its own text") {
  const std::string svg =
      svg_charts({{"a<b", {{"x&y", {0, 1}, {0, 1}}, {"z", {0, 1}, {1, 0}}}}, {"empty", {}}});
  CHECK(svg.find("a&lt;b") != std::string::npos);
  CHECK(svg.find("x&amp;y") != std::string::npos);
  CHECK(svg.find("<path d=\"M80 220h0L680 40\" stroke=\"#1f77b4\"/>") != std::string::npos);
  CHECK(svg.find("<path d=\"M80 40h0L680 220\" stroke=\"#d95f02\"/>") != std::string::npos);
  CHECK(svg.find("empty") != std::string::npos);
}

TEST_SUITE_END();
