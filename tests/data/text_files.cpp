#include "data/text_files.h"

#include <fmt/format.h>

#include <cstdint>

#include "data/data_files.h"

namespace rondo::test {

namespace {

std::string letter_of(uint32_t code) {
  if (code < 0x80) {
    return std::string(1, static_cast<char>(code));
  }
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

std::string quoted(const std::string& token) {
  return token == "\"" || token == "\\" ? "\"\\" + token + "\"" : "\"" + token + "\"";
}

}  // namespace

void write_byte_pairs(const std::filesystem::path& folder, const std::vector<std::string>& merges) {
  // As GPT-2's files have it: printed letters stand for themselves, others for one from U+0100 on.
  uint32_t next = 0x100;
  int number = 0;
  std::string vocabulary = "{";
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool is_printed = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    const std::string letter = letter_of(is_printed ? byte : next++);
    vocabulary += fmt::format("{}: {}, ", quoted(letter), number++);
  }
  std::string lines = "#version: 0.2\n";
  for (const std::string& merge : merges) {
    lines += merge + "\n";
    const size_t blank = merge.find(' ');
    vocabulary +=
        fmt::format("{}: {}, ", quoted(merge.substr(0, blank) + merge.substr(blank + 1)), number++);
  }
  write_file(folder / "vocab.json", vocabulary + fmt::format("\"<|endoftext|>\": {}}}", number));
  write_file(folder / "merges.txt", lines);
}

}  // namespace rondo::test
