#include "backends/machine_peak.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <chrono>
#include <limits>

namespace rondo {

namespace {

constexpr int kTrialsOfPeak = 5;

/// The shortest of a few runs, in seconds; one before them takes the memory.
template <class Work>
double fastest_run(const Work& work) {
  using Clock = std::chrono::steady_clock;
  work();
  double fastest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTrialsOfPeak; ++i) {
    const auto start = Clock::now();
    work();
    fastest = std::min(fastest, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return std::max(fastest, 1e-9);
}

}  // namespace

double peak_flops_per_sec(c10::ScalarType type) {
  const at::NoGradGuard no_grad;
  const int64_t size = type == at::kFloat ? 1024 : 512;  // others may be slow
  const at::Tensor a = at::full({size, size}, 0.5, type);
  at::Tensor product = at::empty({size, size}, type);
  const double seconds = fastest_run([&] { at::mm_out(product, a, a); });
  const auto side = static_cast<double>(size);
  return 2.0 * side * side * side / seconds;
}

double peak_bytes_per_sec() {
  const at::NoGradGuard no_grad;
  constexpr int64_t kBytes = int64_t{64} << 20;
  const at::Tensor from = at::full({kBytes}, 1, at::kByte);
  at::Tensor to = at::empty({kBytes}, at::kByte);
  return 2.0 * static_cast<double>(kBytes) / fastest_run([&] { to.copy_(from); });
}

}  // namespace rondo
