#include "data/tar_files.h"

#include <fmt/format.h>

#include <cstring>

namespace rondo::test {

namespace {

std::string header(const std::string& name, size_t size) {
  std::string block(512, '\0');
  const auto put = [&](size_t at, const std::string& text) {
    block.replace(at, text.size(), text);
  };
  put(0, name);
  put(100, fmt::format("{:07o}", 0644));
  put(124, fmt::format("{:011o}", size));
  put(148, "        ");
  block[156] = '0';
  put(257,
      std::string("ustar\0"
                  "00",
                  8));
  int sum = 0;
  for (const char c : block) {
    sum += static_cast<unsigned char>(c);
  }
  put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return block;
}

}  // namespace

std::string tar_bytes(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string bytes;
  for (const auto& [name, content] : files) {
    bytes += header(name, content.size()) + content;
    bytes.resize((bytes.size() + 511) / 512 * 512, '\0');
  }
  return bytes + std::string(1024, '\0');
}

std::string npy_row(const std::vector<float>& numbers) {
  std::string head =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}", numbers.size());
  head.resize(117, ' ');
  std::string bytes("\x93NUMPY\x01\x00\x76\x00", 10);
  bytes += head + "\n";
  const auto* const values = reinterpret_cast<const char*>(numbers.data());
  return bytes.append(values, numbers.size() * sizeof(float));
}

}  // namespace rondo::test
