#include "board/export_page.h"

#include <doctest/doctest.h>

#include <string>

#include "board/made_runs.h"
#include "board/page.h"
#include "support/contains.h"
#include "support/temp_dir.h"

TEST_SUITE_BEGIN("board/export_page");

using namespace rondo;
using namespace rondo::test;

namespace {

RunIndexOptions options_at(const std::filesystem::path& root) {
  RunIndexOptions options;
  options.root = root;
  return options;
}

}  // namespace

TEST_CASE("an exported page has the answers of every run by address") {
  const TempDir dir;
  write_run(dir / "group/a b", 0.1, 1.5);
  append_text(dir / "group/a b/record.jsonl",
              "{\"kind\":\"image\",\"step\":2,\"time\":102,\"name\":\"x/y\",\"data\":\"UE5H\"}\n");
  write_text(dir / "group/a b/latest_run.log", "a line\n");
  RunIndex index(options_at(dir.path()));
  const std::string page = exported_page(index);
  const std::string begin = "<script type=\"application/json\" id=\"export\">{";
  REQUIRE(contains(page, begin));
  CHECK(page.find(begin) == board_page().rfind("</body>"));
  CHECK(contains(page, "\"/api/run?id=group%2Fa%20b\":{\"id\":\"group/a b\""));
  CHECK(contains(
      page,
      "\"/api/series?run=group%2Fa%20b&metric=loss&x=update\":{\"run\":\"group/a b\","
      "\"metric\":\"loss\",\"count\":2,\"x\":[1,2],\"y\":[2,1.5],\"low\":[2,1.5],\"high\":[2,"
      "1.5]},"));
  CHECK(contains(page, "&x=time\":"));
  CHECK(!contains(page, "&x=tokens\":"));
  CHECK(contains(page,
                 "\"/api/media?run=group%2Fa%20b&kind=image&name=x%2Fy&step=2\":"
                 "\"data:image/png;base64,UE5H\""));
  CHECK(contains(page, "\"/api/log?run=group%2Fa%20b\":{\"lines\":[\"a line\"],\"count\":1}"));
  CHECK(contains(page, "\"/api/runs\":{\"root\":"));
  CHECK(contains(page, "\"/api/alerts\":{\"alerts\":[]}"));
}

TEST_CASE("no name of a run or a metric ends the element of an exported page") {
  const TempDir dir;
  write_text(dir / "a/record.jsonl",
             session_line("</script><script>alert(1)</script><!--") +
                 numbers_line(1, "\"</script><b>\":1"));
  RunIndex index(options_at(dir.path()));
  const std::string page = exported_page(index);
  const size_t begin = page.find("id=\"export\">");
  const size_t end = page.find("</script>", begin);
  REQUIRE(end != std::string::npos);
  const std::string json = page.substr(begin + 12, end - begin - 12);
  CHECK(json.find('<') == std::string::npos);
  CHECK(json.back() == '}');
  CHECK(contains(json, "\\u003c/script>\\u003cscript>alert(1)"));
}

TEST_SUITE_END();
