#pragma once

#include <string>
#include <vector>

namespace rondo::test {

/// What a command answered.
struct Answer {
  int code = 0;
  std::string out;  ///< on standard output
};

/// Runs the whole command line in this process.
Answer run_here(std::vector<std::string> arguments);

}  // namespace rondo::test
