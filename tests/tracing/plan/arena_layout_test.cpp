#include "tracing/plan/arena_layout.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

TEST_SUITE_BEGIN("tracing/plan/arena_layout");

using namespace rondo;

namespace {

bool live_together(const ArenaBlock& a, const ArenaBlock& b) {
  return a.first <= b.last && b.first <= a.last;
}

std::vector<ArenaBlock> random_blocks(std::mt19937& draw) {
  std::vector<ArenaBlock> blocks(1 + draw() % 60);
  for (ArenaBlock& block : blocks) {
    block.bytes = static_cast<int64_t>(draw() % 5000);
    block.first = draw() % 100;
    block.last = block.first + draw() % 20;
  }
  return blocks;
}

}  // namespace

TEST_CASE("no two blocks that live at the same time overlap, and all lie on cache lines") {
  std::mt19937 draw(7);
  for (int round = 0; round < 200; ++round) {
    const std::vector<ArenaBlock> blocks = random_blocks(draw);
    const ArenaLayout layout = lay_out(blocks);
    REQUIRE(layout.offsets.size() == blocks.size());
    for (size_t i = 0; i < blocks.size(); ++i) {
      CHECK(layout.offsets[i] % 64 == 0);
      CHECK(layout.offsets[i] + blocks[i].bytes <= layout.bytes);
      for (size_t j = 0; j < i; ++j) {
        const bool apart = layout.offsets[i] + blocks[i].bytes <= layout.offsets[j] ||
                           layout.offsets[j] + blocks[j].bytes <= layout.offsets[i];
        CHECK((apart || !live_together(blocks[i], blocks[j])));
      }
    }
  }
}

TEST_CASE("blocks that never live together share their place") {
  CHECK(lay_out({{1000, 0, 1}, {1000, 2, 3}, {900, 4, 5}}).bytes == 1024);
  CHECK(lay_out({{1000, 0, 2}, {1000, 2, 3}}).bytes == 2048);
  CHECK(lay_out({}).bytes == 0);
}

TEST_SUITE_END();
