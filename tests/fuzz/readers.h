#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rondo::test {

/// A reader of files that nobody vouches for. It takes a file or refuses it with an `Error`; any
/// other exception, and every crash, is a fault.
struct Reader {
  const char* name;                      ///< and the folder of its corpus
  bool (*read)(std::string_view bytes);  ///< \return false: refused with an `Error`
};

const std::vector<Reader>& every_reader();

}  // namespace rondo::test
