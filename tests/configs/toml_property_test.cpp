#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "configs/config_values.h"
#include "configs/toml_file.h"
#include "core/random.h"
#include "support/campaign.h"

using namespace rondo;

namespace {

/// Random config trees, with the values and names that are hard to write.
class Trees {
 public:
  explicit Trees(uint64_t seed) : random_(seed) {}

  ConfigTable table(int levels) {
    ConfigTable made;
    for (uint64_t i = random_.below(5); i > 0; --i) {
      made.set(text(), value(levels));
    }
    return made;
  }

 private:
  ConfigValue value(int levels) {
    switch (random_.below(levels > 0 ? 6 : 4)) {
      case 0:
        return ConfigValue(random_.below(2) == 0);
      case 1:
        return ConfigValue(integer());
      case 2:
        return ConfigValue(number());
      case 3:
        return ConfigValue(text());
      case 4:
        return ConfigValue(list(levels - 1));
      default:
        return ConfigValue(table(levels - 1));
    }
  }

  ConfigArray list(int levels) {
    ConfigArray made;
    for (uint64_t i = random_.below(4); i > 0; --i) {
      made.push_back(value(levels));
    }
    return made;
  }

  int64_t integer() {
    const auto bits = static_cast<int64_t>(random_.next());
    return bits >> random_.below(64);
  }

  double number() {
    using Limits = std::numeric_limits<double>;
    const double hard[] = {0.0,
                           -0.0,
                           1.0,
                           1e22,
                           1e-5,
                           1e300,
                           Limits::max(),
                           Limits::denorm_min(),
                           Limits::infinity(),
                           -Limits::infinity(),
                           Limits::quiet_NaN()};
    const uint64_t which = random_.below(2 * std::size(hard));
    return which < std::size(hard) ? hard[which] : std::ldexp(random_.normal(), 40);
  }

  std::string text() {
    const char* const hard[] = {"",  " ",   ".",      "\"",  "'", "\\", "\n", "\t", "\x01", "\x7f",
                                "#", "[a]", "\"\"\"", "'''", "=", "é",  "学", "a",  "b-1",  "_"};
    std::string made;
    for (uint64_t i = random_.below(4); i > 0; --i) {
      made += hard[random_.below(std::size(hard))];
    }
    return made;
  }

  KeyedRandom random_;
};

}  // namespace

TEST_SUITE_BEGIN("configs/toml_property");

TEST_CASE("any tree that is written reads back equal") {
  const int cases = 500 * test::campaign_scale();
  for (int seed = 0; seed < cases; ++seed) {
    CAPTURE(seed);
    const ConfigTable tree = Trees(static_cast<uint64_t>(seed)).table(4);
    const std::string text = write_toml(tree);
    CAPTURE(text);
    const ConfigValue read = parse_toml(text, "t.toml");
    CHECK(test::same_table(tree, *read.get_if<ConfigTable>()));
  }
}

TEST_CASE("nested tables become sections, lists of tables stay in one line") {
  const char* const text =
      "a = 1\n\n[b]\nc = [{ d = 1 }, { e = 2 }]\n\n[b.f.g]\nh = \"i\"\n\n[empty]\n";
  CHECK(write_toml(*parse_toml(text, "t.toml").get_if<ConfigTable>()) == text);
}

TEST_SUITE_END();
