#include "core/random.h"

#include <cmath>
#include <numeric>
#include <utility>

namespace rondo {

namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ULL;  // 2^64 / golden ratio: SplitMix64's increment

uint64_t mixed(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace

KeyedRandom::KeyedRandom(uint64_t seed, uint64_t a, uint64_t b)
    : state_(mixed(mixed(mixed(seed + kGolden) + a + kGolden) + b + kGolden)) {}

uint64_t KeyedRandom::next() {
  state_ += kGolden;
  return mixed(state_);
}

double KeyedRandom::uniform() {
  return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

double KeyedRandom::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * M_PI * uniform());
}

uint64_t KeyedRandom::below(uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  const uint64_t threshold = (0 - bound) % bound;
  while (true) {
    const Wide product = static_cast<Wide>(next()) * bound;
    if (static_cast<uint64_t>(product) >= threshold) {
      return static_cast<uint64_t>(product >> 64);
    }
  }
}

std::vector<int64_t> permutation(int64_t size, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), int64_t{0});
  KeyedRandom random(
      seed, static_cast<uint64_t>(epoch), 0x73687566);  // "shuf": a stream of its own
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random.below(i)]);
  }
  return order;
}

}  // namespace rondo
