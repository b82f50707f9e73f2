#include "data/arrays/npy_file.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "core/state_dict.h"
#include "data/data_files.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// The bytes of numbers as this machine has them, or in the other order.
template <class T>
std::string bytes_of(const std::vector<T>& values, bool swapped = false) {
  std::string bytes;
  for (const T& value : values) {
    std::string one(reinterpret_cast<const char*>(&value), sizeof(T));
    bytes += swapped ? std::string(one.rbegin(), one.rend()) : one;
  }
  return bytes;
}

/// A file as numpy.save writes it: the header is padded so that the data begins at a multiple
/// of 64.
std::string npy(const std::string& header, const std::string& data, int version = 1) {
  std::string text = header;
  const size_t preamble = version == 1 ? 10 : 12;
  text.append(64 - (preamble + text.size() + 1) % 64, ' ');
  text += '\n';
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  for (size_t i = 0; i < (version == 1 ? 2U : 4U); ++i) {
    bytes += static_cast<char>(text.size() >> (8 * i) & 0xFF);
  }
  return bytes + text + data;
}

std::string header(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': " + descr + ", 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }";
}

TensorMap read(const std::string& bytes) {
  const TempDir dir;
  write_file(dir / "a.npy", bytes);
  return read_npy(dir / "a.npy");  // what is mapped outlives the folder
}

std::string error(const std::string& bytes) {
  return message_of([&] { read(bytes); });
}

}  // namespace

TEST_SUITE_BEGIN("data/npy_file");

TEST_CASE("numbers that tensors have are read as they are") {
  const auto floats = read(npy(header("'<f4'", "(2, 3)"), bytes_of<float>({0, 1, 2, 3, 4, 5})));
  CHECK(equal_bytes(floats[""], torch::arange(6, torch::kFloat).reshape({2, 3})));
  const auto doubles = read(npy(header("'<f8'", "(2,)"), bytes_of<double>({0.5, -2})));
  CHECK(equal_bytes(doubles[""], torch::tensor({0.5, -2.0}, torch::kDouble)));
  const auto longs = read(npy(header("'<i8'", "()"), bytes_of<int64_t>({-7})));
  CHECK(equal_bytes(longs[""], torch::tensor(-7, torch::kLong)));
  const auto truths = read(npy(header("'|b1'", "(3,)"), std::string("\1\0\1", 3)));
  CHECK(equal_bytes(truths[""], torch::tensor({true, false, true})));
  const auto halves = read(npy(header("'<f2'", "(1,)"), std::string("\x00\x3c", 2)));
  CHECK(equal_bytes(halves[""], torch::ones({1}, torch::kHalf)));
  const auto complex = read(npy(header("'<c8'", "(1,)"), bytes_of<float>({1, 2})));
  CHECK(torch::view_as_real(complex[""]).equal(torch::tensor({{1.0F, 2.0F}})));
  CHECK(read(npy(header("'<f4'", "(0, 4)"), ""))[""].sizes() == at::IntArrayRef({0, 4}));
}

TEST_CASE("the other byte order, Fortran's order and unsigned numbers become a tensor's") {
  const auto swapped = read(npy(header("'>i4'", "(3,)"), bytes_of<int32_t>({1, -2, 300}, true)));
  CHECK(equal_bytes(swapped[""], torch::tensor({1, -2, 300}, torch::kInt)));
  const auto swapped_complex = read(npy(header("'>c8'", "(1,)"), bytes_of<float>({1, 2}, true)));
  CHECK(torch::view_as_real(swapped_complex[""]).equal(torch::tensor({{1.0F, 2.0F}})));
  const auto fortran =
      read(npy(header("'<f4'", "(2, 3)", true), bytes_of<float>({0, 3, 1, 4, 2, 5})));
  CHECK(equal_bytes(fortran[""], torch::arange(6, torch::kFloat).reshape({2, 3})));
  const auto shorts = read(npy(header("'<u2'", "(2,)"), bytes_of<uint16_t>({7, 65535})));
  CHECK(equal_bytes(shorts[""], torch::tensor({7, 65535}, torch::kInt)));
  const auto words = read(npy(header("'>u4'", "(2,)"), bytes_of<uint32_t>({7, 4294967295U}, true)));
  CHECK(equal_bytes(words[""], torch::tensor({int64_t{7}, int64_t{4294967295}}, torch::kLong)));
  const auto bytes = read(npy(header("'|u1'", "(2,)"), std::string("\x07\xff", 2)));
  CHECK(equal_bytes(bytes[""], torch::tensor({7, 255}, torch::kByte)));
  CHECK(contains(error(npy(header("'<u8'", "(2,)"), bytes_of<uint64_t>({1, 1ULL << 63}))),
                 "offset 136: the uint64 9223372036854775808"));
}

TEST_CASE("fields of records are tensors by their names") {
  std::string data;
  for (int32_t i = 0; i < 2; ++i) {
    data += bytes_of<float>({static_cast<float>(i), static_cast<float>(i) + 0.5F});
    data += bytes_of<int16_t>({static_cast<int16_t>(i * 10)});
  }
  const auto fields = read(npy(header("[('pos', '<f4', (2,)), ('id', '<i2')]", "(2,)"), data, 2));
  CHECK(equal_bytes(fields["pos"], torch::tensor({{0.0F, 0.5F}, {1.0F, 1.5F}})));
  CHECK(equal_bytes(fields["id"], torch::tensor({0, 10}, torch::kShort)));
}

TEST_CASE("what no tensor can hold, and damage, are errors with file and offset") {
  const std::string good = npy(header("'<f4'", "(2,)"), bytes_of<float>({1, 2}));
  CHECK(contains(error(npy(header("'<U8'", "(2,)"), std::string(64, 'a'))), "the type \"<U8\""));
  CHECK(contains(error(npy(header("'|O'", "(2,)"), std::string(16, 'a'))), "the type \"|O\""));
  CHECK(contains(error("PK\3\4"), "a.npy: offset 0: this is not a .npy file"));
  CHECK(contains(error(good.substr(0, good.size() - 1)), "promises 8 bytes, the file holds 7"));
  CHECK(contains(error(good + "x"), "promises 8 bytes, the file holds 9"));
  CHECK(contains(error(npy(header("'<f4'", "(4611686018427387904, 4)"), "")),
                 "more elements than a file holds"));
  CHECK(contains(error(npy(header("'<f4'", "(-1,)"), "")), "integers >= 0"));
  CHECK(contains(error(npy("{'descr': '<f4', 'shape': (0,)}", "")), "no \"fortran_order\""));
  CHECK(contains(error(npy("((((((((1,),),),),),),),)", "")), "nested too deeply"));
}

TEST_CASE(
    "a file that is cut anywhere, or has any byte of its header changed, is read or refused") {
  const std::string good =
      npy(header("[('x', '<f4', (2,)), ('y', '>u4')]", "(2,)"), std::string(24, '\1'));
  const auto read_or_refuse = [](const std::string& bytes) {
    try {
      read(bytes);
    } catch (const DataError&) {
    }
  };
  for (size_t size = 0; size < good.size(); ++size) {
    read_or_refuse(good.substr(0, size));
  }
  for (size_t at = 0; at < good.size(); ++at) {
    for (const char other : {'\0', '\xff', '9', '(', ']', '\''}) {
      std::string bytes = good;
      bytes[at] = other;
      read_or_refuse(bytes);
    }
  }
}

TEST_SUITE_END();
