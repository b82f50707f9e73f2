#include "optim/internal/number_rules.h"

#include <doctest/doctest.h>

#include <limits>

#include "core/error.h"

using namespace rondo;

TEST_SUITE_BEGIN("optim/number_rules");

TEST_CASE("the message names optimizer, number, rule and value, also within a group") {
  const auto message_of = [](const Optimizer::Numbers& numbers, const Optimizer::Numbers& own) {
    try {
      rondo::detail::check_numbers("AdamW", numbers, {{{"*"}, "", own}});
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message_of({{"lr", 0.0}, {"beta1", 0.9}}, {}).empty());
  const std::string of_default = message_of({{"beta1", 1.5}}, {});
  CHECK(of_default.find("AdamW.beta1") != std::string::npos);
  CHECK(of_default.find("[0, 1)") != std::string::npos);
  CHECK(of_default.find("1.5") != std::string::npos);
  CHECK(message_of({{"lr", 0.1}}, {{"lr", -2.0}}).find("params[0].lr") != std::string::npos);
  CHECK_FALSE(message_of({{"lr", std::numeric_limits<double>::infinity()}}, {}).empty());
}

TEST_SUITE_END();
