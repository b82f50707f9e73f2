#include "core/call_stack.h"

#include <doctest/doctest.h>

#include <string>

TEST_SUITE_BEGIN("core/call_stack");

using namespace rondo;

namespace {

__attribute__((noinline)) CallStack stack_here() {
  CallStack stack = call_stack();
  CHECK(!stack.empty());  // or else the call would take this one's place on the stack
  return stack;
}

}  // namespace

TEST_CASE("the innermost place is named, with its line where there are line tables") {
  const std::string source = source_of(stack_here());
  CHECK_MESSAGE(source.find("stack_here") != std::string::npos, source);
  CHECK_MESSAGE(source.find("call_stack_test.cpp:14)") != std::string::npos, source);
}

TEST_CASE("functions can be passed over") {
  const std::string source =
      source_of(stack_here(), {"(anonymous namespace)::stack_here", "stack_here"});
  CHECK_MESSAGE(source.find("call_stack_test.cpp:") != std::string::npos, source);
  CHECK(source.find("stack_here") == std::string::npos);
}

TEST_CASE("an empty stack has no place") {
  CHECK(source_of({}).empty());
}

TEST_SUITE_END();
