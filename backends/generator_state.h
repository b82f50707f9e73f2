#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>

namespace rondo {

/// State of LibTorch's default generator of a device: uint8 [bytes] on the CPU, a copy.
at::Tensor generator_state(c10::Device device = c10::kCPU);

void set_generator_state(const at::Tensor& state, c10::Device device = c10::kCPU);

/// Begins the numbers of the same generator that follow from `seed`.
void seed_generator(uint64_t seed, c10::Device device = c10::kCPU);

/// On the CPU, the numbers of `seed` for as long as it lives; afterwards the generator goes on as
/// if none of them had been drawn.
class SeededGenerator {
 public:
  explicit SeededGenerator(uint64_t seed) : before_(generator_state()) { seed_generator(seed); }

  SeededGenerator(const SeededGenerator&) = delete;
  SeededGenerator& operator=(const SeededGenerator&) = delete;

  ~SeededGenerator() { set_generator_state(before_); }

 private:
  at::Tensor before_;
};

}  // namespace rondo
