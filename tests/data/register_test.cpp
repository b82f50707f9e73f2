#include "data/register.h"

#include <doctest/doctest.h>

#include <set>

#include "data/data_loader.h"
#include "data/generated/glyphs.h"

using namespace rondo;

TEST_SUITE_BEGIN("data/register");

TEST_CASE("every built-in data set can be named, and its options have docs and valid defaults") {
  Registry<DataSource> registry("dataset");
  register_builtin_datasets(registry);
  CHECK(registry.entries().size() >= 19);
  for (const auto& entry : registry.entries()) {
    CHECK(!entry.doc.empty());
    for (const OptionKey& key : entry.keys->keys()) {
      CAPTURE(entry.name + "." + key.name);
      CHECK(!key.doc.empty());
    }
  }
}

TEST_CASE("no key of a data set is one of the loader's, beside which it stands in a config") {
  Registry<DataSource> registry("dataset");
  register_builtin_datasets(registry);
  std::set<std::string> taken = {"label", "dataset"};
  const KeyTable<LoaderOptions> of_loader = loader_keys();
  for (const OptionKey& key : of_loader.keys()) {
    taken.insert(key.name);
  }
  for (const auto& entry : registry.entries()) {
    for (const OptionKey& key : entry.keys->keys()) {
      CAPTURE(entry.name);
      CHECK(taken.count(key.name) == 0);
    }
  }
}

TEST_CASE("a data set is built from its keys") {
  Registry<DataSource> registry("dataset");
  register_builtin_datasets(registry);
  ConfigTable keys;
  keys.set("size", ConfigValue(int64_t{30}));
  keys.set("split", ConfigValue(std::string("val")));
  std::vector<Fault> faults;
  FaultSink sink("", faults);
  const auto factory = registry.read_named("Glyphs", {}, keys, sink);
  REQUIRE(faults.empty());
  CHECK(dynamic_cast<const Glyphs&>(*factory.make()).size() == 30);
  keys.set("split", ConfigValue(std::string("test")));
  keys.set("noise", ConfigValue(2.0));
  registry.read_named("Glyphs", {}, keys, sink);
  CHECK(faults.size() == 2);
}

TEST_SUITE_END();
