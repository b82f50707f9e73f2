#include "cli/run_here.h"

#include <iostream>
#include <sstream>

#include "cli/cli_main.h"

namespace rondo::test {

namespace {

/// Catches what is written to `std::cout` while it lives.
class CaughtOutput {
 public:
  CaughtOutput() : before_(std::cout.rdbuf(caught_.rdbuf())) {}

  CaughtOutput(const CaughtOutput&) = delete;
  CaughtOutput& operator=(const CaughtOutput&) = delete;

  ~CaughtOutput() { std::cout.rdbuf(before_); }

  std::string text() const { return caught_.str(); }

 private:
  std::ostringstream caught_;
  std::streambuf* before_;
};

}  // namespace

Answer run_here(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "rondo");
  std::vector<char*> pointers;
  for (std::string& argument : arguments) {
    pointers.push_back(argument.data());
  }
  const CaughtOutput output;
  const int code = cli_main(static_cast<int>(pointers.size()), pointers.data());
  return {code, output.text()};
}

}  // namespace rondo::test
