#include "data/tables/cells.h"
#include "core/utf8.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>

#include "core/random.h"

using namespace rondo;

TEST_SUITE_BEGIN("data/cells");

TEST_CASE("numbers are read as their format has them, and nothing else") {
  struct Case {
    const char* cell;
    NumberFormat format;
    std::optional<double> number;
  };

  const Case cases[] = {
      {"1", {}, 1.0},
      {"+.5", {}, 0.5},
      {"-3e2", {}, -300.0},
      {"1e-400", {}, 0.0},
      {"1e400", {}, std::nullopt},
      {"inf", {}, std::nullopt},
      {"nan", {}, std::nullopt},
      {"0x10", {}, std::nullopt},
      {"", {}, std::nullopt},
      {"1,5", {}, std::nullopt},
      {"12cm", {}, std::nullopt},
      {"1,5", {',', '\0'}, 1.5},
      {"1.5", {',', '\0'}, std::nullopt},
      {"1,5e3", {',', '\0'}, 1500.0},
      {"1,234", {'.', ','}, 1234.0},
      {"-1,234,567.25", {'.', ','}, -1234567.25},
      {"1,23", {'.', ','}, std::nullopt},
      {"1234,567", {'.', ','}, std::nullopt},
      {"123", {'.', ','}, 123.0},
      {"1.234.567,5", {',', '.'}, 1234567.5},
      {"1 234,5", {',', ' '}, 1234.5},
      {"1'234.5", {'.', '\''}, 1234.5},
      {",", {'.', ','}, std::nullopt},
      {"-", {',', '.'}, std::nullopt},
  };
  for (const Case& one : cases) {
    CAPTURE(one.cell);
    CHECK(parse_number(one.cell, one.format) == one.number);
  }
}

TEST_CASE("numbers of any length are the nearest doubles, as the C library reads them") {
  KeyedRandom random(1);
  for (int i = 0; i < 100000; ++i) {
    std::string cell = random.below(2) == 0 ? "-" : "";
    const int64_t digits = 1 + random.below(19);
    const int64_t point = random.below(20);
    for (int64_t d = 0; d < digits; ++d) {
      cell += d == point ? "." : "";
      cell += static_cast<char>('0' + random.below(10));
    }
    const std::optional<double> number = parse_number(cell, {});
    REQUIRE_MESSAGE(number, cell);
    const double expected = std::strtod(cell.c_str(), nullptr);
    CHECK_MESSAGE(*number == expected, cell);
    CHECK_MESSAGE(std::signbit(*number) == std::signbit(expected), cell);
  }
}

TEST_CASE("dates are read in the order that is said, with a time of day") {
  const auto date = parse_date("2024-02-29T13:05:10.5Z", "ymd");
  REQUIRE(date);
  CHECK(date->seconds == 1709211910.5);
  CHECK(date->month == 2);
  CHECK(date->weekday == 3);  // a Thursday
  CHECK(date->hour == 13);
  CHECK(parse_date("19580329", "ymd")->seconds == -371174400.0);
  CHECK(parse_date("1970/1/1", "ymd")->seconds == 0.0);
  CHECK(parse_date("29.02.2024 00:00", "dmy")->seconds == 1709164800.0);
  CHECK(parse_date("2/29/2024", "mdy")->seconds == 1709164800.0);
  for (const char* wrong : {"2023-02-29",
                            "2024-13-01",
                            "2024-2",
                            "2024-02-29x",
                            "24-02-03",
                            "2024-02-29 25:00",
                            "2024-02-29 10:61",
                            "",
                            "-",
                            "20240229 "}) {
    CAPTURE(wrong);
    CHECK(!parse_date(wrong, "ymd"));
  }
}

TEST_CASE("truth values are words in any case") {
  CHECK(parse_boolean("Yes") == true);
  CHECK(parse_boolean("FALSE") == false);
  CHECK(!parse_boolean("falsetto"));
  CHECK(!parse_boolean("1"));
}

TEST_CASE("missing words are whole cells") {
  const MissingWords missing({"NA", "-9"});
  CHECK(missing.contains(""));
  CHECK(missing.contains("NA"));
  CHECK(missing.contains("-9"));
  CHECK(!missing.contains("-99"));
  CHECK(!missing.contains("na"));
}

TEST_CASE("Latin-1 and UTF-8 are told apart and converted") {
  CHECK(is_utf8("gr\xc3\xbc\xc3\x9f"));
  CHECK(!is_utf8("gr\xfc\xdf"));
  CHECK(!is_utf8("\xc3"));
  CHECK(!is_utf8("\xed\xa0\x80"));  // half of a pair of UTF-16
  CHECK(!is_utf8("\xe0\x80\xaf"));  // three bytes for what one says
  CHECK(latin1_to_utf8("gr\xfc\xdf") == "gr\xc3\xbc\xc3\x9f");
}

TEST_CASE("a cell in a message is short and obeys no terminal") {
  CHECK(shown_cell("a\x1b[0m") == "a\\x1b[0m");
  CHECK(shown_cell(std::string(1000, 'x')).size() < 70);
}

TEST_SUITE_END();
