#include "data/arrays/raw_array.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <string>

#include "core/error.h"
#include "core/state_dict.h"
#include "data/arrays/array_files.h"
#include "data/data_files.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

at::Tensor read(const std::string& bytes, const RawArray& array) {
  const TempDir dir;
  write_file(dir / "a.bin", bytes);
  return read_raw(dir / "a.bin", array).clone();
}

}  // namespace

TEST_SUITE_BEGIN("data/raw_array");

TEST_CASE("a file of numbers becomes rows, behind a header and in either byte order") {
  const std::string bytes("\1\0\2\0\3\0\4\0\5\0\6\0", 12);
  CHECK(equal_bytes(read(bytes, {"int16", {3}}),
                    torch::tensor({1, 2, 3, 4, 5, 6}, torch::kShort).reshape({2, 3})));
  CHECK(equal_bytes(read(bytes, {"int16", {}, 4}), torch::tensor({3, 4, 5, 6}, torch::kShort)));
  CHECK(equal_bytes(read(bytes, {"int16", {}, 10, true}), torch::tensor({0x600}, torch::kShort)));
  CHECK(equal_bytes(read(std::string(1, 'x') + bytes, {"int32", {1}, 1}),
                    torch::tensor({0x20001, 0x40003, 0x60005}, torch::kInt).reshape({3, 1})));
  CHECK(read(bytes, {"uint8", {2, 3}}).sizes() == at::IntArrayRef({2, 2, 3}));
}

TEST_CASE("a file that ends inside of a row is refused, with the place") {
  const std::string bytes(13, '\0');
  const auto error = [&](const RawArray& array) { return message_of([&] { read(bytes, array); }); };
  CHECK(
      contains(error({"float32", {}}), "a.bin: offset 12: expected whole rows of 4 bytes, got 1"));
  CHECK(contains(error({"float32", {4}}), "offset 0: expected whole rows of 16 bytes, got 13"));
  CHECK(contains(error({"float32", {}, 100}), "offset 13"));
  CHECK_THROWS_AS(read("", {"uint8", {}}), DataError);
  CHECK_THROWS_AS(read(bytes, {"float31", {}}), UsageError);
  CHECK_THROWS_AS(read(bytes, {"uint8", {int64_t{1} << 30, int64_t{1} << 30}}), UsageError);
}

TEST_CASE("such a file gives a tensor of a batch") {
  const TempDir dir;
  write_file(dir / "a.bin", std::string("\1\2\3\4", 4));
  ArrayFiles::Options options;
  options.data_dir = dir.path();
  options.arrays = {{"x", "a.bin", "", {"uint8", {2}}}};
  const ArrayFiles data(options);
  CHECK(data.size() == 2);
  CHECK(equal_bytes(data.get(1)["x"], torch::tensor({3, 4}, torch::kByte)));
}

TEST_SUITE_END();
