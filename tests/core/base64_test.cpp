#include "core/base64.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "core/error.h"

TEST_SUITE_BEGIN("core/base64");

using namespace rondo;

TEST_CASE("base64 has the test vectors of RFC 4648, in both directions") {
  const std::pair<std::string, std::string> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    CHECK(base64(bytes) == text);
    CHECK(from_base64(text) == bytes);
  }
  const std::string all("\x00\xFF\x10\x80", 4);
  CHECK(from_base64(base64(all)) == all);
}

TEST_CASE("other texts are no base64") {
  for (const char* text : {"Zg", "Zg=", "Z===", "Zm9v\n", "Zm9=Zm9v", "Zm-_"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(from_base64(text), DataError);
  }
}

TEST_SUITE_END();
