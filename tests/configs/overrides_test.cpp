#include "configs/overrides.h"

#include <doctest/doctest.h>

#include "configs/config_values.h"
#include "configs/toml_file.h"
#include "core/error.h"

using namespace rondo;

namespace {

const char* const kFile = R"(
[trainer.init]
model_dir = "runs/a"
loop = { max_steps = 10 }
callbacks = [{ GradNorm = true }, { KeepNCheckpoints = { n = 10 } }]
)";

ConfigValue with(const std::vector<std::string>& assignments) {
  ConfigValue root = parse_toml(kFile, "run.toml");
  for (const std::string& assignment : assignments) {
    apply_override(root, assignment);
  }
  return root;
}

/// True when the assignment does the same as editing the file: `[trainer.init]` then has `line`.
bool equals_edit(const std::string& assignment, const std::string& from, const std::string& to) {
  std::string edited = kFile;
  edited.replace(edited.find(from), from.size(), to);
  return test::same_value(with({assignment}), parse_toml(edited, "run.toml"));
}

/// The fault of an assignment to the file above; an empty one when it has none.
Fault fault_of(const std::string& assignment) {
  try {
    with({assignment});
  } catch (const ConfigError& error) {
    return error.faults.at(0);
  }
  return {};
}

}  // namespace

TEST_SUITE_BEGIN("configs/overrides");

TEST_CASE("an override does what editing the file would do") {
  CHECK(equals_edit("trainer.init.loop.max_steps=20", "max_steps = 10", "max_steps = 20"));
  CHECK(equals_edit("trainer.init.loop.max_steps=2.5", "max_steps = 10", "max_steps = 2.5"));
  CHECK(equals_edit("trainer.init.loop={num_epochs=2}", "max_steps = 10", "num_epochs = 2"));
  CHECK(equals_edit("trainer.init.loop.num_epochs=2", "10 }\n", "10, num_epochs = 2 }\n"));
  CHECK(equals_edit("trainer.init.callbacks=[]",
                    "[{ GradNorm = true }, { KeepNCheckpoints = { n = 10 } }]",
                    "[]"));
}

TEST_CASE("tables that are missing on the way are made") {
  CHECK(equals_edit("trainer.fit.ckpt_path=false",
                    "[trainer.init]",
                    "[trainer.fit]\nckpt_path = false\n[trainer.init]"));
}

TEST_CASE("an element of a list is named by its number, after a dot or in brackets") {
  CHECK(equals_edit("trainer.init.callbacks.1.KeepNCheckpoints.n=3", "n = 10", "n = 3"));
  CHECK(equals_edit("trainer.init.callbacks[1].KeepNCheckpoints.n=3", "n = 10", "n = 3"));
  CHECK(equals_edit("trainer.init.callbacks[0]={Other=true}", "GradNorm", "Other"));
}

TEST_CASE("a value that is no TOML, or more than one value, is a string") {
  CHECK(equals_edit("trainer.init.model_dir=runs/b", "\"runs/a\"", "\"runs/b\""));
  CHECK(equals_edit("trainer.init.model_dir=\"runs/b\"", "\"runs/a\"", "\"runs/b\""));
  CHECK(equals_edit("trainer.init.model_dir=", "\"runs/a\"", "\"\""));
  CHECK(equals_edit("trainer.init.model_dir=a=b", "\"runs/a\"", "\"a=b\""));
  CHECK(equals_edit("trainer.init.model_dir=2026-01-02", "\"runs/a\"", "\"2026-01-02\""));
  CHECK(equals_edit("trainer.init.model_dir=1\nother=2", "\"runs/a\"", "\"1\\nother=2\""));
  CHECK(equals_edit("trainer.init.model_dir=C:\\\"x\"", "\"runs/a\"", R"('C:\"x"')"));
}

TEST_CASE("later overrides win, and see what earlier ones made") {
  const ConfigValue root = with({"a.b=1", "a.c=[{}]", "a.b=2", "a.c.0.d=3"});
  CHECK(test::same_value(
      test::value_at(root, "a"),
      test::value_at(parse_toml("a = { b = 2, c = [{ d = 3 }] }", "t.toml"), "a")));
}

TEST_CASE("what is set, and all inside it, stands on the command line") {
  const ConfigValue root = with({"a.b=[{ c = 1 }]"});
  const ConfigValue& list = test::value_at(test::value_at(root, "a"), "b");
  const ConfigEntry& c = list.get_if<ConfigArray>()->at(0).get_if<ConfigTable>()->entries().at(0);
  for (const SourcePosition& position : {list.position(), c.key_position, c.value.position()}) {
    CHECK(position.file == "command line");
    CHECK(position.line == 0);
  }
}

TEST_CASE("an override that leads nowhere is a fault that names its path") {
  std::string deep = "a";
  for (int i = 0; i < 100000; ++i) {
    deep += ".a";
  }
  for (const std::string path : {"",
                                 ".",
                                 "a.",
                                 ".a",
                                 "a..b",
                                 "a[]",
                                 "trainer.init.model_dir.x",
                                 "trainer.init.callbacks.2",
                                 "trainer.init.callbacks[-1].x",
                                 "trainer.init.callbacks.first",
                                 "trainer.init.callbacks[0x1]",
                                 deep.c_str()}) {
    CAPTURE(path.substr(0, 40));
    const Fault fault = fault_of(path + "=1");
    CHECK(fault.position.file == "command line");
    CHECK(fault.path == path);
    CHECK_FALSE(fault.message.empty());
  }
}

TEST_CASE("an argument without =, and a value that is not UTF-8, are faults") {
  CHECK(fault_of("trainer.init.seed").position.file == "command line");
  CHECK(fault_of("trainer.init.model_dir=\xff").position.file == "command line");
}

TEST_CASE("P38: --params sets what its JSON names, and keeps the types of JSON") {
  ConfigValue root = parse_toml(kFile, "run.toml");
  apply_params(root, R"({"trainer.init.loop.max_steps": 20,
                         "trainer": {"init": {"seed": 3, "loop": {"eval_frequency": 1.0}}},
                         "trainer.init.model_dir": "a=b", "trainer.init.tags": ["x", {"y": true}]})");
  apply_override(root, "trainer.init.callbacks[1].KeepNCheckpoints.n=10");
  const ConfigValue edited = parse_toml(R"(
[trainer.init]
model_dir = "a=b"
loop = { max_steps = 20, eval_frequency = 1.0 }
callbacks = [{ GradNorm = true }, { KeepNCheckpoints = { n = 10 } }]
seed = 3
tags = ["x", { y = true }]
)",
                                        "run.toml");
  CHECK(test::same_value(root, edited));
}

TEST_CASE("null in --params takes a key away") {
  ConfigValue root = parse_toml(kFile, "run.toml");
  apply_params(root, R"({"trainer.init.loop.max_steps": null, "trainer.init.absent": null})");
  CHECK(test::same_value(root,
                         parse_toml(R"(
[trainer.init]
model_dir = "runs/a"
loop = {}
callbacks = [{ GradNorm = true }, { KeepNCheckpoints = { n = 10 } }]
)",
                                    "run.toml")));
}

TEST_CASE("what is no JSON object is a fault of --params") {
  const std::string deep(100, '[');
  for (const std::string& text : {std::string("[1]"),
                                  std::string("{\"a\": }"),
                                  std::string("{\"a\": tru}"),
                                  std::string("{} x"),
                                  std::string("{\"a\": 1e999}"),
                                  "{\"a\": " + deep}) {
    ConfigValue root = parse_toml(kFile, "run.toml");
    CAPTURE(text);
    CHECK_THROWS_AS(apply_params(root, text), ConfigError);
  }
}

TEST_SUITE_END();
