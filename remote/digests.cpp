#include "remote/digests.h"

#include <cerrno>
#include <fstream>
#include <vector>

#include "core/error.h"

namespace rondo {

std::string to_hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 digest;
  digest.update(bytes);
  return to_hex(digest.finish());
}

std::string sha256_hex_of_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    throw IoError("open " + file.string(), errno);
  }
  Sha256 digest;
  std::vector<char> block(1 << 20);
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0) {
    digest.update({block.data(), static_cast<size_t>(in.gcount())});
  }
  if (in.bad()) {
    throw IoError("read " + file.string(), errno);
  }
  return to_hex(digest.finish());
}

}  // namespace rondo
