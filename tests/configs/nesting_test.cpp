#include "configs/internal/nesting.h"

#include <doctest/doctest.h>

#include <string>

#include "configs/repeated.h"

using rondo::detail::find_too_deep;
using rondo::test::repeated;

TEST_SUITE_BEGIN("configs/nesting");

TEST_CASE("dots, brackets and their sums count, up to the limit and no further") {
  CHECK_FALSE(find_too_deep("a.a.a.a = 1", 3));
  CHECK(find_too_deep("a.a.a.a.a = 1", 3));
  CHECK_FALSE(find_too_deep("x = [[[1]]]", 3));
  CHECK(find_too_deep("x = [[[[1]]]]", 3));
  CHECK_FALSE(find_too_deep("x.y = { a.b = 1 }", 3));
  CHECK(find_too_deep("x.y = { a.b = [1] }", 3));
  CHECK(find_too_deep("[a.b.c.d]", 3));
}

TEST_CASE("what is side by side does not add up") {
  CHECK_FALSE(find_too_deep("a.b = 1\nc.d = 2\ne.f = 3\n", 2));
  CHECK_FALSE(find_too_deep("x = [0.5, 0.5, 0.5, 0.5]", 2));
  CHECK_FALSE(find_too_deep("x = [[1], [2], [3],\n [4]]\ny = [5]", 2));
  CHECK_FALSE(find_too_deep("[a.b]\n[c.d]\n[e.f]\n", 2));
}

TEST_CASE("strings and comments are text, however they are written") {
  CHECK_FALSE(find_too_deep("# [[[[ ......\nx = 1", 1));
  CHECK_FALSE(find_too_deep("x = \"....[[[[\"", 1));
  CHECK_FALSE(find_too_deep("x = '....[[[[\\'", 1));
  CHECK_FALSE(find_too_deep("x = \"a\\\"....\"", 1));
  CHECK_FALSE(find_too_deep("x = \"\"\"a\n....\\\"\"\"....\"\"\"", 1));
  CHECK_FALSE(find_too_deep("x = '''a\n....''....'''", 1));
}

TEST_CASE("what follows a string counts again, also after quotes right before its end") {
  const std::string deep = repeated("a.", 9) + "a = 1";
  CHECK(find_too_deep("x = \"text\" \n" + deep, 3));
  CHECK(find_too_deep("x = [\"\"\"text\"\"\"\"\", { " + deep + "}]", 3));
  CHECK(find_too_deep("x = ['''text'''', { " + deep + "}]", 3));
  CHECK(find_too_deep("\"a\".\"a\".\"a\".\"a\".\"a\" = 1", 3));
  CHECK(find_too_deep("x = \"not closed\n" + deep, 3));
}

TEST_CASE("the offset is that of the first place too deep") {
  CHECK(find_too_deep("x = 1\ny = [[1]]", 1) == 11);
  CHECK(find_too_deep("", 1) == std::nullopt);
}

TEST_SUITE_END();
