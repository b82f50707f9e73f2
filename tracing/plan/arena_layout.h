#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rondo {

/// Memory that is needed from one instruction to another.
struct ArenaBlock {
  int64_t bytes = 0;
  size_t first = 0;  ///< the instruction that writes it first
  size_t last = 0;   ///< the last one that touches it, >= first
};

/// Where each block lies in one allocation.
struct ArenaLayout {
  std::vector<int64_t> offsets;  ///< in bytes, multiples of 64; one a block
  int64_t bytes = 0;
};

/// Places blocks so that no two that live at the same time overlap: the largest first, each at the
/// lowest offset that is free for all of its life. No optimum (that is NP-hard), but within a few
/// percent of one on training steps.
/// Source: the greedy-by-size planner of Pisarchyk and Lee 2020, arXiv:2001.03288.
ArenaLayout lay_out(const std::vector<ArenaBlock>& blocks);

}  // namespace rondo
