#pragma once

#include <string_view>

namespace rondo {

/// `board/page.html`, which the build puts into the program.
extern const std::string_view kBoardPage;

}  // namespace rondo
