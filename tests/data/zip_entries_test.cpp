#include "data/arrays/zip_entries.h"

#include <doctest/doctest.h>
#include <torch/types.h>
#include <zlib.h>

#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/state_dict.h"
#include "data/arrays/npy_file.h"
#include "data/data_files.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

std::string number(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) {
    text += static_cast<char>(value >> (8 * i));
  }
  return text;
}

std::string deflated(const std::string& content) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(compressBound(content.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// An archive of entries (name, content), as numpy.savez (with zip64 fields) or savez_compressed
/// writes it.
std::string archive(const std::vector<std::pair<std::string, std::string>>& entries,
                    bool is_packed) {
  std::string bytes;
  std::string directory;
  for (const auto& [name, content] : entries) {
    const std::string packed = is_packed ? deflated(content) : content;
    const auto crc =
        crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
    const std::string common = number(is_packed ? 8 : 0, 2) + number(0, 4) + number(crc, 4);
    const std::string offset = number(bytes.size(), 4);
    bytes += "PK\3\4" + number(45, 2) + number(0, 2) + common + number(0xFFFFFFFF, 4) +
             number(0xFFFFFFFF, 4) + number(name.size(), 2) + number(20, 2) + name + number(1, 2) +
             number(16, 2) + number(content.size(), 8) + number(packed.size(), 8) + packed;
    directory += "PK\1\2" + number(45, 2) + number(45, 2) + number(0, 2) + common +
                 number(packed.size(), 4) + number(content.size(), 4) + number(name.size(), 2) +
                 number(0, 2) + number(0, 2) + number(0, 2) + number(0, 2) + number(0, 4) + offset +
                 name;
  }
  const std::string count = number(entries.size(), 2);
  return bytes + directory + std::string("PK\5\6", 4) + number(0, 4) + count + count +
         number(directory.size(), 4) + number(bytes.size(), 4) + number(0, 2);
}

std::string npy(const std::string& type, const std::string& shape, const std::string& data) {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header += std::string(117 - header.size(), ' ') + "\n";
  return std::string("\x93NUMPY\1\0", 8) + number(header.size(), 2) + header + data;
}

TensorMap read_entries(const std::string& bytes) {
  const TempDir dir;
  write_file(dir / "a.npz", bytes);
  TensorMap copies;
  for (const auto& [name, tensor] : read_npz(dir / "a.npz").items()) {
    copies.set(name, tensor.clone());
  }
  return copies;
}

std::string two_arrays(bool is_packed) {
  return archive({{"x.npy", npy("<i4", "(2,)", number(7, 4) + number(8, 4))},
                  {"dir/y.npy", npy("|u1", "(3,)", "abc")}},
                 is_packed);
}

}  // namespace

TEST_SUITE_BEGIN("data/zip_entries");

TEST_CASE("the arrays of an .npz file have their names, stored or compressed") {
  for (const bool is_packed : {false, true}) {
    const TensorMap arrays = read_entries(two_arrays(is_packed));
    CHECK(arrays.items().size() == 2);
    CHECK(equal_bytes(arrays["x"], torch::tensor({7, 8}, torch::kInt)));
    CHECK(equal_bytes(arrays["dir/y"], torch::tensor({97, 98, 99}, torch::kByte)));
  }
}

TEST_CASE("what is no array, and damage, are errors with file and offset") {
  const auto error = [](const std::string& bytes) {
    return message_of([&] { read_entries(bytes); });
  };
  CHECK(contains(error("PK"), "a.npz: offset 0: this is not a zip archive"));
  CHECK(contains(error(archive({{"a.txt", "hello"}}, false)), "\"a.txt\" is not a .npy file"));
  for (const bool is_packed : {false, true}) {
    std::string bytes = two_arrays(is_packed);
    bytes[60] ^= 1;  // in the first entry
    CHECK(contains(error(bytes), "\"x.npy\" is damaged"));
  }
}

TEST_CASE("a size beyond what the bytes can unpack to is refused before it is allocated") {
  std::string bytes = two_arrays(true);
  const size_t entry = bytes.find("PK\1\2");
  bytes.replace(entry + 24, 4, number(0xFFFFFFF0, 4));
  CHECK(contains(message_of([&] { read_entries(bytes); }), "does not match its bytes"));
}

TEST_CASE("an archive that is cut anywhere, or has any byte changed, is read or refused") {
  for (const bool is_packed : {false, true}) {
    const std::string good = two_arrays(is_packed);
    const auto read_or_refuse = [](const std::string& bytes) {
      try {
        read_entries(bytes);
      } catch (const DataError&) {
      }
    };
    for (size_t size = 0; size < good.size(); size += 3) {
      read_or_refuse(good.substr(0, size));
    }
    for (size_t at = 0; at < good.size(); ++at) {
      for (const char other : {'\0', '\xff', '\x50'}) {
        std::string bytes = good;
        bytes[at] = other;
        read_or_refuse(bytes);
      }
    }
  }
}

TEST_SUITE_END();
