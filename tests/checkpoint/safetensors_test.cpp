#include "checkpoint/safetensors_file.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <cstdlib>
#include <string>

#include "checkpoint/archives.h"
#include "checkpoint/internal/bytes.h"
#include "core/random.h"
#include "support/temp_dir.h"

using namespace rondo;
using rondo::test::bytes_of;
using rondo::test::contains;
using rondo::test::python_file;
using rondo::test::TempDir;
using rondo::test::write_bytes;

TEST_SUITE_BEGIN("checkpoint/safetensors");

namespace {

StateDict every_dtype() {
  StateDict state;
  for (const at::ScalarType type : {at::kDouble,
                                    at::kFloat,
                                    at::kHalf,
                                    at::kBFloat16,
                                    at::kLong,
                                    at::kInt,
                                    at::kShort,
                                    at::kChar,
                                    at::kByte,
                                    at::kBool}) {
    state.set(c10::toString(type), torch::arange(6).reshape({2, 3}).gt(2).to(type));
  }
  state.set("scalar", torch::tensor(3.5));
  state.set("empty", torch::zeros({0, 4}));
  state.set("transposed", torch::arange(6).reshape({2, 3}).t());
  state.set("a \"name\"\n\\ in \xC3\xBC", torch::ones({1}));
  return state;
}

std::string file_of(const std::string& header, const std::string& data) {
  std::string bytes;
  rondo::detail::put(bytes, static_cast<uint64_t>(header.size()));
  return bytes + header + data;
}

/// What reading these bytes throws, as text; "" when they are read.
std::string safetensors_error(const std::string& bytes) {
  const TempDir dir;
  write_bytes(dir / "x.safetensors", bytes);
  try {
    read_safetensors(dir / "x.safetensors");
  } catch (const CheckpointError&) {
    return describe(std::current_exception());
  }
  return "";
}

}  // namespace

TEST_CASE("tensors of every dtype come back with their bytes, names and order") {
  const TempDir dir;
  const StateDict state = every_dtype();
  write_safetensors(*real_file_system(), dir / "x.safetensors", state);
  const StateDict back = read_safetensors(dir / "x.safetensors");
  CHECK(back.names() == state.names());
  CHECK(first_difference(state, back).empty());
}

TEST_CASE("the header has the form that the format asks for") {
  const TempDir dir;
  const StateDict state{{"w", torch::ones({2, 1})}};
  write_safetensors(*real_file_system(), dir / "x.safetensors", state);
  const std::string bytes = bytes_of(dir / "x.safetensors");
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})";
  CHECK(bytes.substr(8, header.size()) == header);
  CHECK((bytes.size() - 8) % 8 == 0);
}

TEST_CASE("what is no plain tensor is refused by name") {
  const TempDir dir;
  for (const StateValue& value :
       {StateValue(3), StateValue(torch::ones({1}, torch::kComplexFloat))}) {
    try {
      write_safetensors(*real_file_system(), dir / "x.safetensors", StateDict{{"odd one", value}});
      FAIL("did not throw");
    } catch (const CheckpointError& error) {
      CHECK(contains(error.what(), "odd one"));
    }
    CHECK(real_file_system()->list(dir.path()).empty());
  }
}

TEST_CASE("headers that are not what they must be are refused") {
  const std::string four(4, '\0');
  CHECK(safetensors_error(
            file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", four)) == "");
  CHECK(safetensors_error(file_of("{ }", "")) == "");
  for (
      const char* header :
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})",
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})",
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})",
       R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
       R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})",
       R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})",
       R"({"a":{"dtype":"F32","shape":[1]}})",
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1}})",
       R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}})",
       R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
       R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
       R"({"a":3})",
       R"({"\ud800":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       R"([])",
       R"({)",
       R"()"}) {
    CAPTURE(header);
    CHECK(safetensors_error(file_of(header, four)) != "");
  }
  CHECK(safetensors_error("") != "");
  CHECK(safetensors_error(std::string(7, '\xff')) != "");
  CHECK(safetensors_error(std::string(64, '\xff')) != "");
}

TEST_CASE("mutated files give tensors or a CheckpointError") {
  const TempDir dir;
  write_safetensors(*real_file_system(), dir / "x.safetensors", every_dtype());
  const std::string whole = bytes_of(dir / "x.safetensors");
  KeyedRandom random(1);
  for (int i = 0; i < 300 * rondo::test::campaign_scale(); ++i) {
    std::string bytes = whole;
    for (uint64_t n = 0; n <= random.below(3); ++n) {
      const size_t at = static_cast<size_t>(random.below(std::min<uint64_t>(bytes.size(), 1200)));
      bytes[at] = static_cast<char>(random.below(256));
    }
    if (random.below(4) == 0) {
      bytes.resize(static_cast<size_t>(random.below(bytes.size())));
    }
    safetensors_error(bytes);  // anything else that it throws fails the test
  }
}

TEST_SUITE_END();
