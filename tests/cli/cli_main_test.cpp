#include "cli/cli_main.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.h"

namespace {

/// Runs the whole command line in this process.
int run(std::vector<std::string> arguments,
        const std::function<void(rondo::Registries&)>& register_components = {}) {
  arguments.insert(arguments.begin(), "program");
  std::vector<char*> pointers;
  for (std::string& argument : arguments) {
    pointers.push_back(argument.data());
  }
  return rondo::cli_main(static_cast<int>(pointers.size()), pointers.data(), register_components);
}

}  // namespace

TEST_SUITE_BEGIN("cli/cli_main");

TEST_CASE("the exit code tells a wrong use from a failure") {
  CHECK(run({"version"}) == 0);
  CHECK(run({"fit"}) == 2);
  CHECK(run({"version"}, [](rondo::Registries&) { throw rondo::UsageError("taken"); }) == 2);
  CHECK(run({"version"}, [](rondo::Registries&) {
          rondo::Fault fault;
          fault.message = "is wrong";
          throw rondo::ConfigError(std::move(fault));
        }) == 2);
  CHECK(run({"version"}, [](rondo::Registries&) { throw rondo::DataError("torn"); }) == 1);
  CHECK(run({"version"}, [](rondo::Registries&) { throw std::runtime_error("broken"); }) == 1);
}

TEST_CASE("a program's own components are asked for once, when a command runs") {
  int calls = 0;
  const auto count = [&calls](rondo::Registries&) { ++calls; };
  CHECK(run({"--help"}, count) == 0);
  CHECK(calls == 0);
  CHECK(run({"version"}, count) == 0);
  CHECK(calls == 1);
}

TEST_SUITE_END();
