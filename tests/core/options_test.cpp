#include "core/options.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/registry.h"

using namespace rondo;

namespace {

struct Shape {
  virtual ~Shape() = default;
  virtual double area() const = 0;
};

struct Square final : Shape {
  using Component = Shape;

  struct Options {
    double side = 1.0;
    std::vector<int64_t> tags = {};
    Time every = 1;
    std::string color = "red";
  };

  explicit Square(const Options& o) : side(o.side) {}

  double area() const override { return side * side; }

  double side;
};

Registry<Shape> shapes() {
  Registry<Shape> registry("shape");
  registry.add<Square>("Square", "Four equal sides.")
      .key("side", &Square::Options::side, greater_than(0), "length of a side, m")
      .key("tags", &Square::Options::tags, at_least(0), "numbers")
      .key("every", &Square::Options::every, "how often")
      .key("color", &Square::Options::color, one_of({"red", "blue"}), "its color");
  return registry;
}

ConfigValue component(const std::string& name, ConfigTable keys) {
  ConfigTable table;
  table.set(name, ConfigValue(std::move(keys)), {"t.toml", 1, 1});
  return ConfigValue(std::move(table));
}

/// The faults of reading one key of a Square.
std::vector<Fault> faults_of(const std::string& key, ConfigValue value) {
  ConfigTable keys;
  keys.set(key, std::move(value), {"t.toml", 2, 3});
  std::vector<Fault> faults;
  FaultSink sink("shape", faults);
  shapes().read_single(component("Square", keys), sink);
  return faults;
}

}  // namespace

TEST_SUITE_BEGIN("core/options");

TEST_CASE("a component is built from its keys, whatever the case of its name") {
  ConfigTable keys;
  keys.set("side", ConfigValue(int64_t{3}));
  std::vector<Fault> faults;
  FaultSink sink("shape", faults);
  const Factory<Shape> factory = shapes().read_single(component("sQuare", keys), sink);
  CHECK(faults.empty());
  REQUIRE(factory);
  CHECK(factory.name() == "Square");
  CHECK(factory.make()->area() == 9.0);
}

TEST_CASE("each fault names the path, what was expected and what was found") {
  std::vector<Fault> faults = faults_of("side", ConfigValue(0.0));
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].path == "shape.Square.side");
  CHECK(faults[0].message.find("> 0") != std::string::npos);
  CHECK(faults_of("side", ConfigValue(std::string("wide"))).size() == 1);
  CHECK(faults_of("color", ConfigValue(std::string("green"))).size() == 1);
  CHECK(faults_of("tags", ConfigValue(ConfigArray{ConfigValue(int64_t{-1})})).size() == 1);
  CHECK(faults_of("every", ConfigValue(std::string("3parsecs"))).size() == 1);
  CHECK(faults_of("every", ConfigValue(std::string("3ep"))).empty());
}

TEST_CASE("an unknown key is a fault at its own place, with a suggestion") {
  const std::vector<Fault> faults = faults_of("sidee", ConfigValue(1.0));
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].position.line == 2);
  CHECK(faults[0].message.find("\"side\"") != std::string::npos);
}

TEST_CASE("what was read is written back with every default") {
  const Registry<Shape> registry = shapes();
  CHECK(registry.write(use<Square>({2.0})).to_text() ==
        "{ Square = { side = 2.0, tags = [], every = 1, color = \"red\" } }");
}

TEST_CASE("a share below one and a list with a least size are checked element by element") {
  CHECK(below_one().accepts(ConfigValue(0.0)));
  CHECK_FALSE(below_one().accepts(ConfigValue(1.0)));
  const OptionCheck sizes = each(2, at_least(1));
  const auto list = [](std::vector<int64_t> values) {
    ConfigArray array;
    for (const int64_t value : values) {
      array.emplace_back(value);
    }
    return ConfigValue(std::move(array));
  };
  CHECK(sizes.accepts(list({4, 1})));
  CHECK_FALSE(sizes.accepts(list({4})));
  CHECK_FALSE(sizes.accepts(list({4, 0})));
}

TEST_SUITE_END();
