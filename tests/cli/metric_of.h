#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "cli/run_here.h"

namespace rondo::test {

/// A number of an answer in JSON; fails the test when it is not there.
inline double metric_of(const Answer& answer, const std::string& name) {
  const size_t at = answer.out.find("\"" + name + "\": ");
  REQUIRE(at != std::string::npos);
  return std::atof(answer.out.c_str() + at + name.size() + 4);
}

}  // namespace rondo::test
