#include "board/export_page.h"

#include <doctest/doctest.h>

#include <string>

#include "board/made_runs.h"
#include "board/page.h"
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

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
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
  REQUIRE(has(page, begin));
  CHECK(page.find(begin) == kBoardPage.rfind("</body>"));
  CHECK(has(page, "\"/api/run?id=group%2Fa%20b\":{\"id\":\"group/a b\""));
  CHECK(has(page,
            "\"/api/series?run=group%2Fa%20b&metric=loss&x=update\":{\"run\":\"group/a b\","
            "\"metric\":\"loss\",\"count\":2,\"x\":[1,2],\"y\":[2,1.5],\"low\":[2,1.5],\"high\":[2,"
            "1.5]},"));
  CHECK(has(page, "&x=time\":"));
  CHECK(!has(page, "&x=tokens\":"));
  CHECK(has(page,
            "\"/api/media?run=group%2Fa%20b&kind=image&name=x%2Fy&step=2\":"
            "\"data:image/png;base64,UE5H\""));
  CHECK(has(page, "\"/api/log?run=group%2Fa%20b\":{\"lines\":[\"a line\"],\"count\":1}"));
  CHECK(has(page, "\"/api/runs\":{\"root\":"));
  CHECK(has(page, "\"/api/alerts\":{\"alerts\":[]}"));
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
  CHECK(has(json, "\\u003c/script>\\u003cscript>alert(1)"));
}

TEST_SUITE_END();
