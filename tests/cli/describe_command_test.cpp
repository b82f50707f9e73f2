#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "cli/count_of.h"
#include "cli/run_here.h"
#include "core/file_system.h"
#include "support/temp_dir.h"

using rondo::test::Answer;
using rondo::test::count_of;
using rondo::test::run_here;
using rondo::test::TempDir;

namespace {

std::string json(const std::string& name) {
  const Answer answer = run_here({"describe", name, "--json"});
  CHECK(answer.code == 0);
  CHECK(answer.out.find('\n') == answer.out.size() - 1);
  return answer.out;
}

}  // namespace

TEST_SUITE_BEGIN("cli/describe_command");

TEST_CASE("describe --json prints every component, and the keys of every run") {
  const Answer all = run_here({"describe", "--json"});
  CHECK(all.code == 0);
  for (const char* part : {"\"name\": \"AdamW\"", "\"name\": \"Mlp\"", "\"trainer\": [{"}) {
    CHECK_MESSAGE(count_of(all.out, part) == 1, part);
  }
}

TEST_CASE("describe NAME --json prints what it was asked for only, whatever the case of its name") {
  for (const char* name : {"AdamW", "adamw"}) {
    const std::string text = json(name);
    CHECK(text.rfind("{\"components\": [{\"family\": \"optimizer\", \"name\": \"AdamW\"", 0) == 0);
    CHECK(count_of(text, "\"family\"") == 1);
    CHECK(count_of(text, "\"name\": \"lr\"") == 1);
    CHECK(count_of(text, "\"trainer\"") == 0);
  }
  const std::string trainer = json("trainer");
  CHECK(trainer.rfind("{\"trainer\": [{\"name\": \"model_dir\"", 0) == 0);
  CHECK(count_of(trainer, "\"family\"") == 0);
}

TEST_CASE("the defaults of a run are those of a file, not of the struct") {
  const Answer shown = run_here({"describe", "trainer"});
  CHECK(shown.code == 0);
  CHECK(count_of(shown.out, "LogOptimizerParamGroup") > 0);
  CHECK(count_of(shown.out, "= false }") == 0);  // nothing is taken away
}

TEST_CASE("describe NAME ends with an example, and --write makes a page of each family") {
  const Answer shown = run_here({"describe", "AdamW"});
  CHECK(count_of(shown.out, "\n[trainer.init.optimizer.AdamW]\n") == 1);
  CHECK(count_of(json("AdamW"), "\"example\": \"[trainer.init.optimizer.AdamW]") == 1);

  const TempDir dir;
  const std::string pages = (dir / "pages").string();
  CHECK(run_here({"describe", "--write", pages}).code == 0);
  CHECK(std::filesystem::exists(pages + "/README.md"));
  CHECK(count_of(rondo::real_file_system()->read(pages + "/optimizers.md"), "\n## AdamW\n") == 1);
  CHECK(run_here({"describe", "AdamW", "--write", pages}).code == 2);
}

TEST_CASE("a name that nothing has is a wrong use, also as JSON") {
  CHECK(run_here({"describe", "AdamX"}).code == 2);
  const Answer answer = run_here({"describe", "AdamX", "--json"});
  CHECK(answer.code == 2);
  CHECK(answer.out.empty());
}

TEST_SUITE_END();
