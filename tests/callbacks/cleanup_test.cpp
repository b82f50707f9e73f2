#include "callbacks/cleanup.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.h"

using rondo::Cleanup;

TEST_SUITE_BEGIN("callbacks/cleanup");

TEST_CASE("actions run last pushed first, once, with the exception that ends the scope") {
  std::vector<int> order;
  bool saw_error = true;
  Cleanup cleanup;
  cleanup.push([&](const std::exception_ptr& error) {
    order.push_back(1);
    saw_error = error != nullptr;
  });
  cleanup.push([&](const std::exception_ptr&) { order.push_back(2); });
  CHECK(cleanup.close(nullptr) == nullptr);
  CHECK(order == std::vector<int>{2, 1});
  CHECK_FALSE(saw_error);
  CHECK(cleanup.close(nullptr) == nullptr);
  CHECK(order.size() == 2);
}

TEST_CASE("T36: what an action throws goes on, with the first error nested; the others still run") {
  bool last_ran = false;
  Cleanup cleanup;
  cleanup.push([&](const std::exception_ptr&) { last_ran = true; });
  cleanup.push([](const std::exception_ptr&) { throw std::runtime_error("second"); });
  const std::exception_ptr error =
      cleanup.close(std::make_exception_ptr(std::invalid_argument("first")));
  CHECK(last_ran);
  CHECK(rondo::describe(error) == "second: first");
  CHECK_THROWS_AS(std::rethrow_exception(rondo::root_cause(error)), std::invalid_argument);
}

TEST_SUITE_END();
