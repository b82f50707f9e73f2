#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "coverage/row.h"

namespace rondo::test {

/// How a row's step ran.
struct Outcome {
  std::string way;     ///< "traced", "guarded", "eager", "refused"; "wrong", "crashed", "broken"
  std::string reason;  ///< why not traced; "" when it is
};

/// Trains eight updates under both backends and compares bytes of losses and state.
Outcome try_row(const Row& row);

/// The same in a child process, so that a crash is an outcome, "crashed".
std::vector<Outcome> try_rows_apart(const Row* rows, size_t count);

}  // namespace rondo::test
