#include "tracing/plan/arena_layout.h"

#include <algorithm>
#include <numeric>

namespace rondo {

namespace {

constexpr int64_t kAlignment = 64;  // a cache line; the widest vector

int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool live_together(const ArenaBlock& a, const ArenaBlock& b) {
  return a.first <= b.last && b.first <= a.last;
}

}  // namespace

ArenaLayout lay_out(const std::vector<ArenaBlock>& blocks) {
  std::vector<size_t> by_size(blocks.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(), [&](size_t a, size_t b) {
    return blocks[a].bytes > blocks[b].bytes;
  });
  ArenaLayout layout;
  layout.offsets.resize(blocks.size(), 0);
  std::vector<size_t> placed;  // ascending by offset
  for (const size_t block : by_size) {
    int64_t offset = 0;
    for (const size_t other : placed) {
      const bool fits = offset + aligned(blocks[block].bytes) <= layout.offsets[other];
      if (live_together(blocks[block], blocks[other]) && !fits) {
        offset = std::max(offset, layout.offsets[other] + aligned(blocks[other].bytes));
      }
    }
    layout.offsets[block] = offset;
    layout.bytes = std::max(layout.bytes, offset + aligned(blocks[block].bytes));
    placed.insert(std::upper_bound(
                      placed.begin(),
                      placed.end(),
                      offset,
                      [&](int64_t value, size_t other) { return value < layout.offsets[other]; }),
                  block);
  }
  return layout;
}

}  // namespace rondo
