#include "data/text/token_bin.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include "core/error.h"
#include "core/state_dict.h"
#include "data/data_files.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

TokenBin::Options over(const TempDir& dir, std::string_view bytes, const std::string& dtype) {
  write_file(dir / "t.bin", bytes);
  TokenBin::Options options{"t.bin"};
  options.data_dir = dir.path();
  options.context = 2;
  options.dtype = dtype;
  return options;
}

}  // namespace

TEST_SUITE_BEGIN("data/token_bin");

TEST_CASE("tokens of two and of four bytes are read as windows") {
  const TempDir dir;
  const std::string narrow("\x01\x00\xff\xff\x03\x00\x04\x00\x05\x00", 10);
  const TokenBin two(over(dir, narrow, "uint16"));
  CHECK(two.size() == 2);
  const Batch batch = two.get_batch({0, 1});
  CHECK(equal_bytes(batch["tokens"], torch::tensor({{1, 65535}, {3, 4}}, at::kLong)));
  CHECK(equal_bytes(batch["targets"], torch::tensor({{65535, 3}, {4, 5}}, at::kLong)));
  const std::string wide("\x01\x00\x01\x00\x02\x00\x00\x00\x03\x00\x00\x80", 12);
  const TokenBin four(over(dir, wide, "uint32"));
  CHECK(equal_bytes(four.get(0)["tokens"], torch::tensor({65537, 2}, at::kLong)));
  CHECK(four.get(0)["targets"][1].item<int64_t>() == 0x80000003);
}

TEST_CASE("a file of half a token or of too few is an error that names it") {
  const TempDir dir;
  auto options = over(dir, "abcdefg", "uint16");
  CHECK_THROWS_AS(TokenBin{options}, DataError);
  const std::string message = message_of([&] { TokenBin{options}; });
  CHECK(contains(message, (dir / "t.bin").string()));
  CHECK(contains(message, "offset 6"));
  options = over(dir, "abcd", "uint16");
  CHECK(contains(message_of([&] { TokenBin{options}; }), "2 tokens"));
  CHECK_THROWS_AS(TokenBin{over(dir, "", "uint16")}, DataError);
}

TEST_CASE("options out of range are refused") {
  const TempDir dir;
  const auto refused = [&](auto change) {
    auto options = over(dir, "abcdefgh", "uint16");
    change(options);
    CHECK_THROWS_AS(TokenBin{options}, UsageError);
  };
  refused([](auto& o) { o.file = ""; });
  refused([](auto& o) { o.context = 0; });
  refused([](auto& o) { o.dtype = "int8"; });
  refused([](auto& o) { o.stride = 0; });
}

TEST_SUITE_END();
