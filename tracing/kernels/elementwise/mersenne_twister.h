#pragma once

#include <ATen/CPUGeneratorImpl.h>

#include <array>
#include <cstdint>

namespace rondo {

/// The numbers of a generator of LibTorch, many at a time: the same 32-bit words as its engine
/// gives one by one. Hold the generator's mutex until they are kept.
/// Source: Matsumoto and Nishimura, "Mersenne Twister", ACM TOMACS 8(1), 1998.
class MersenneTwister {
 public:
  explicit MersenneTwister(at::CPUGeneratorImpl& generator)
      : generator_(generator), state_(generator.engine().data()) {}

  void draw(uint32_t* words, int64_t count);

  /// The generator goes on after what was drawn.
  void keep();

 private:
  static constexpr int64_t kWords = at::MERSENNE_STATE_N;

  void refill();

  at::CPUGeneratorImpl& generator_;
  at::mt19937_data_pod state_;
};

}  // namespace rondo
