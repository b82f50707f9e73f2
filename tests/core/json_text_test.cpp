#include "core/json_text.h"

#include <doctest/doctest.h>

#include <string>

using namespace rondo;

TEST_SUITE_BEGIN("core/json_text");

TEST_CASE("what JSON does not allow is escaped, and UTF-8 is kept") {
  CHECK(json_string("a\"b\\c\n") == R"("a\"b\\c\u000a")");
  CHECK(json_string("naïve €7 日本 🙂") == "\"naïve €7 日本 🙂\"");
}

TEST_CASE("bytes that are no UTF-8 become replacement characters") {
  const std::string replaced = "\xEF\xBF\xBD";
  CHECK(json_string("a\xFFz") == "\"a" + replaced + "z\"");
  CHECK(json_string("\xC3") == "\"" + replaced + "\"");                      // cut
  CHECK(json_string("\xC0\xAF") == "\"" + replaced + replaced + "\"");       // too long
  CHECK(json_string("\xED\xA0\x80").size() == 2 + 3 * replaced.size());      // a surrogate
  CHECK(json_string("\xF4\x90\x80\x80").size() == 2 + 4 * replaced.size());  // beyond Unicode
}

TEST_SUITE_END();
