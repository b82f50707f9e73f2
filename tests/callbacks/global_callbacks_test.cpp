#include "callbacks/global_callbacks.h"

#include <doctest/doctest.h>

using namespace rondo;

TEST_SUITE_BEGIN("callbacks/global_callbacks");

TEST_CASE("T13: entering twice registers once; leaving removes; leaving again is harmless") {
  Callback callback;
  GlobalCallbackScope outer(callback);
  {
    const GlobalCallbackScope inner(callback);
    CHECK(global_callbacks() == std::vector<Callback*>{&callback});
  }
  CHECK(global_callbacks().size() == 1);
  outer.remove();
  CHECK(global_callbacks().empty());
  outer.remove();
  CHECK(global_callbacks().empty());
}

TEST_SUITE_END();
