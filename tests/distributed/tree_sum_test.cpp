#include <doctest/doctest.h>
#include <torch/types.h>

#include <vector>

#include "core/error.h"
#include "distributed/communicator.h"
#include "distributed/same_bytes.h"
#include "distributed/single_process.h"

using rondo::tree_sum;
using rondo::test::same_bytes;

namespace {

std::vector<at::Tensor> random_parts(int64_t count, at::ScalarType dtype) {
  torch::manual_seed(1);
  std::vector<at::Tensor> parts;
  for (int64_t i = 0; i < count; ++i) {
    parts.push_back(torch::randn({1001}, at::kDouble).mul(100.0).to(dtype));
  }
  return parts;
}

}  // namespace

TEST_SUITE_BEGIN("distributed/tree_sum");

TEST_CASE("a tree sum adds neighbours first, then pairs of pairs") {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    CAPTURE(toString(dtype));
    std::vector<at::Tensor> parts = random_parts(4, dtype);
    const at::Tensor expected = (parts[0] + parts[1]) + (parts[2] + parts[3]);
    const at::Tensor in_order = parts[0] + parts[1] + parts[2] + parts[3];
    tree_sum(parts);
    CHECK(same_bytes(parts[0], expected));
    CHECK_FALSE(same_bytes(parts[0], in_order));  // the order shows in these numbers
  }
}

TEST_CASE("halves that are summed first give the bytes of the whole tree") {
  const auto copies = [] { return random_parts(8, at::kFloat); };
  std::vector<at::Tensor> whole = copies();
  tree_sum(whole);
  std::vector<at::Tensor> parts = copies();
  std::vector<at::Tensor> halves;
  for (size_t half = 0; half < 2; ++half) {
    std::vector<at::Tensor> own(parts.begin() + 4 * half, parts.begin() + 4 * half + 4);
    tree_sum(own);
    halves.push_back(own[0]);
  }
  tree_sum(halves);
  CHECK(same_bytes(halves[0], whole[0]));
}

TEST_CASE("whole numbers add up, and a bool is true where it is in a part") {
  std::vector<at::Tensor> counts = {torch::tensor({1, 2}, at::kLong),
                                    torch::tensor({int64_t{1} << 60, int64_t{3}}, at::kLong)};
  tree_sum(counts);
  CHECK(counts[0][0].item<int64_t>() == (int64_t{1} << 60) + 1);
  CHECK(counts[0][1].item<int64_t>() == 5);

  std::vector<at::Tensor> flags = {torch::tensor({true, false, false}),
                                   torch::tensor({true, true, false})};
  tree_sum(flags);
  CHECK(flags[0][0].item<bool>());
  CHECK(flags[0][1].item<bool>());
  CHECK_FALSE(flags[0][2].item<bool>());
}

TEST_CASE("a number of parts that is no power of two is refused") {
  std::vector<at::Tensor> three = random_parts(3, at::kFloat);
  CHECK_THROWS_AS(tree_sum(three), rondo::UsageError);
  std::vector<at::Tensor> none;
  CHECK_THROWS_AS(tree_sum(none), rondo::UsageError);
}

TEST_CASE("a single process is rank 0 of 1, whose sums are its own values") {
  rondo::SingleProcess alone;
  at::Tensor values = torch::ones({3});
  alone.all_reduce(values);
  alone.broadcast(values, 0);
  CHECK(same_bytes(values, torch::ones({3})));
  CHECK(alone.rank() == 0);
  CHECK(alone.world_size() == 1);
  CHECK(alone.all_gather("a") == std::vector<std::string>{"a"});
}

TEST_SUITE_END();
