#include "tracing/kernels/elementwise/mersenne_twister.h"

#include <algorithm>

#include "core/vector_loop.h"

namespace rondo {

namespace {

// How far ahead lies the word that each word is mixed with.
constexpr int64_t kAhead = at::MERSENNE_STATE_M;

RONDO_INLINE uint32_t twisted(uint32_t word, uint32_t next) {
  const uint32_t mixed = (word & at::UMASK) | (next & at::LMASK);
  return (mixed >> 1) ^ ((next & 1) != 0 ? at::MATRIX_A : 0);
}

RONDO_INLINE uint32_t tempered(uint32_t word) {
  word ^= word >> 11;
  word ^= (word << 7) & 0x9d2c5680;
  word ^= (word << 15) & 0xefc60000;
  return word ^ (word >> 18);
}

}  // namespace

void MersenneTwister::draw(uint32_t* words, int64_t count) {
  while (count > 0) {
    if (state_.left_ == 1) {
      refill();
    }
    // The engine counts one word more than it still has.
    const int64_t taken = std::min<int64_t>(count, state_.left_ - 1);
    const uint32_t* const from = state_.state_.data() + state_.next_;
    vector_loop([=](int64_t i) RONDO_INLINE_LAMBDA { words[i] = tempered(from[i]); }, taken);
    state_.left_ -= static_cast<int>(taken);
    state_.next_ += static_cast<uint32_t>(taken);
    words += taken;
    count -= taken;
  }
}

// The engine makes each word in the place of an old one, from new words where they are made
// already: here in three parts, whose words do not need each other.
void MersenneTwister::refill() {
  constexpr int64_t kBehind = kWords - kAhead;
  std::array<uint32_t, kWords> made;
  const uint32_t* const old = state_.state_.data();
  uint32_t* const now = made.data();
  vector_loop([=](int64_t i)
                  RONDO_INLINE_LAMBDA { now[i] = old[i + kAhead] ^ twisted(old[i], old[i + 1]); },
              kBehind);
  for (int64_t begin = kBehind; begin < kWords - 1; begin += kBehind) {
    const uint32_t* const word = old + begin;
    uint32_t* const to = now + begin;
    vector_loop(
        [=](int64_t i)
            RONDO_INLINE_LAMBDA { to[i] = to[i - kBehind] ^ twisted(word[i], word[i + 1]); },
        std::min(kBehind, kWords - 1 - begin));
  }
  now[kWords - 1] = now[kAhead - 1] ^ twisted(old[kWords - 1], now[0]);
  state_.state_ = made;
  state_.left_ = static_cast<int>(kWords) + 1;
  state_.next_ = 0;
}

void MersenneTwister::keep() {
  at::mt19937 engine = generator_.engine();
  engine.set_data(state_);
  generator_.set_engine(engine);
}

}  // namespace rondo
