#include "data/text/token_windows.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <numeric>

#include "core/error.h"
#include "core/state_dict.h"

using namespace rondo;

TEST_SUITE_BEGIN("data/token_windows");

TEST_CASE("each window needs one token more than its context") {
  CHECK(TokenWindows(4, 4, 1).size() == 0);
  CHECK(TokenWindows(5, 4, 1).size() == 1);
  CHECK(TokenWindows(0, 1, 1).size() == 0);
  CHECK(TokenWindows(9, 4, 4).size() == 2);
  CHECK(TokenWindows(8, 4, 4).size() == 1);
  CHECK(TokenWindows(10, 4, 2).size() == 3);
  CHECK(TokenWindows(10, 2, 5).size() == 2);
}

TEST_CASE("the targets are the tokens one further on, whatever the width of a token") {
  std::vector<uint32_t> wide(10);
  std::iota(wide.begin(), wide.end(), 70000U);
  const Batch batch = TokenWindows(10, 3, 2).gather(wide.data(), {3, 0});
  CHECK(equal_bytes(batch["tokens"],
                    torch::tensor({{70006, 70007, 70008}, {70000, 70001, 70002}}, at::kLong)));
  CHECK(equal_bytes(batch["targets"], batch["tokens"] + 1));
  const std::vector<uint16_t> narrow = {65535, 1, 2};
  CHECK(TokenWindows(3, 1, 1).gather(narrow.data(), {0})["tokens"].item<int64_t>() == 65535);
  CHECK_THROWS_AS(TokenWindows(3, 1, 1).gather(narrow.data(), {2}), UsageError);
}

TEST_SUITE_END();
