#include "optim/optimizer_table.h"

#include <doctest/doctest.h>

#include <limits>

#include "core/error.h"
#include "optim/adam.h"

using namespace rondo;

TEST_SUITE_BEGIN("optim/optimizer_table");

TEST_CASE("the message names optimizer, number, range and value, also within a group") {
  const auto message_of = [](const AdamW::Options& options) {
    try {
      AdamW::table().checked_numbers(options);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message_of({}).empty());
  const std::string of_default = message_of({1e-3, {1.5, 0.9}});
  CHECK(of_default.find("AdamW.beta1") != std::string::npos);
  CHECK(of_default.find("[0, 1)") != std::string::npos);
  CHECK(of_default.find("1.5") != std::string::npos);
  AdamW::Options grouped;
  grouped.params = {{{"*"}, "", {{"lr", -2.0}}}};
  CHECK(message_of(grouped).find("params[0].lr") != std::string::npos);
  CHECK_FALSE(message_of({std::numeric_limits<double>::infinity()}).empty());
}

TEST_SUITE_END();
