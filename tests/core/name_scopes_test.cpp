#include "core/name_scopes.h"

#include <doctest/doctest.h>

#include <stdexcept>

using namespace rondo;

TEST_SUITE_BEGIN("core/name_scopes");

TEST_CASE("T21: scopes nest with slashes, are empty without names, and close on exceptions") {
  NameScopes scopes;
  CHECK(scopes.path().empty());
  try {
    const NameScope outer(scopes, "val");
    const NameScope inner(scopes, "head");
    CHECK(scopes.path() == "val/head/");
    CHECK(scopes.path(1) == "head/");
    throw std::runtime_error("planted");
  } catch (const std::runtime_error&) {
    CHECK(scopes.path().empty());
  }
}

TEST_SUITE_END();
