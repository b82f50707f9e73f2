#include <doctest/doctest.h>

#include <string>

#include "cli/run_here.h"

using rondo::test::Answer;
using rondo::test::run_here;

namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

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
    CHECK_MESSAGE(count(all.out, part) == 1, part);
  }
}

TEST_CASE("describe NAME --json prints what it was asked for only, whatever the case of its name") {
  for (const char* name : {"AdamW", "adamw"}) {
    const std::string text = json(name);
    CHECK(text.rfind("{\"components\": [{\"family\": \"optimizer\", \"name\": \"AdamW\"", 0) == 0);
    CHECK(count(text, "\"family\"") == 1);
    CHECK(count(text, "\"name\": \"lr\"") == 1);
    CHECK(count(text, "\"trainer\"") == 0);
  }
  const std::string trainer = json("trainer");
  CHECK(trainer.rfind("{\"trainer\": [{\"name\": \"model_dir\"", 0) == 0);
  CHECK(count(trainer, "\"family\"") == 0);
}

TEST_CASE("the defaults of a run are those of a file, not of the struct") {
  const Answer shown = run_here({"describe", "trainer"});
  CHECK(shown.code == 0);
  CHECK(count(shown.out, "LogOptimizerParamGroup") > 0);
  CHECK(count(shown.out, "= false }") == 0);  // nothing is taken away
}

TEST_CASE("a name that nothing has is a wrong use, also as JSON") {
  CHECK(run_here({"describe", "AdamX"}).code == 2);
  const Answer answer = run_here({"describe", "AdamX", "--json"});
  CHECK(answer.code == 2);
  CHECK(answer.out.empty());
}

TEST_SUITE_END();
