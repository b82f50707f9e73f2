// What libFuzzer calls, for the reader that RONDO_FUZZ_READER names.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "fuzz/readers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static bool (*const read)(std::string_view) = [] {
    for (const rondo::test::Reader& reader : rondo::test::every_reader()) {
      if (std::strcmp(reader.name, RONDO_FUZZ_READER) == 0) {
        return reader.read;
      }
    }
    std::abort();  // CMake and every_reader() name different ones
  }();
  read(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
