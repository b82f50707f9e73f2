#pragma once

#include <string_view>

namespace rondo {

/// `board/page.html`, which the build puts into the program.
std::string_view board_page();

}  // namespace rondo
