#include "core/error.h"

#include <doctest/doctest.h>

#include <string>

#include "core/factory.h"

using namespace rondo;

TEST_SUITE_BEGIN("core/error");

TEST_CASE("root_cause reaches the innermost exception with its own type") {
  try {
    try {
      try {
        throw NonFiniteLossError("loss is nan");
      } catch (...) {
        std::throw_with_nested(HookError("inner hook"));
      }
    } catch (...) {
      std::throw_with_nested(HookError("outer hook"));
    }
  } catch (...) {
    CHECK_THROWS_AS(std::rethrow_exception(root_cause(std::current_exception())),
                    NonFiniteLossError);
    CHECK(describe(std::current_exception()) == "outer hook: inner hook: loss is nan");
  }
}

TEST_CASE("what is thrown without being a std::exception is described by its text or its type") {
  const auto described = [](const auto& thrown) {
    try {
      throw thrown;
    } catch (...) {
      return describe(std::current_exception());
    }
  };
  CHECK(described(std::string("out of paper")).find("out of paper") != std::string::npos);
  CHECK(described("out of ink").find("out of ink") != std::string::npos);
  CHECK(described(7).find("of type int") != std::string::npos);
}

TEST_CASE("a component that throws no std::exception while it is made is named") {
  struct Thrower {
    using Component = Thrower;
    using Options = NoOptions;

    Thrower() { throw 7; }
  };

  try {
    use<Thrower>().make();
    FAIL("nothing was thrown");
  } catch (const Error&) {
    const std::string text = describe(std::current_exception());
    CHECK(text.find("Thrower cannot be made") != std::string::npos);
    CHECK(text.find("of type int") != std::string::npos);
  }
}

TEST_CASE("a config error lists its faults in file order with what is known of their place") {
  const ConfigError error(
      std::vector<Fault>{{{"a.toml", 9, 1}, "x.y", "second"}, {{"a.toml", 2, 5}, "", "first"}});
  CHECK(std::string(error.what()) == "a.toml:2:5: first\na.toml:9:1: x.y: second");
  CHECK(error.faults.size() == 2);
  CHECK(to_string(Fault{{}, "k", "m"}) == "k: m");
}

TEST_SUITE_END();
