#pragma once

#include <string>

#include "board/run_index.h"

namespace rondo {

/// The board's page with the answers of all runs of an index in it (`docs/board.md`), which a
/// browser shows without a server. Curves have at most 2000 points, logs their last 2000 lines.
std::string exported_page(RunIndex& index);

}  // namespace rondo
