#include "tracing/kernels/products/gemm.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <utility>

#include "core/parallel.h"
#include "core/stopwatch.h"
#include "tracing/kernels/products/blas.h"
#include "tracing/kernels/products/panel_product.h"

namespace rondo {

namespace {

// OpenBLAS cuts k into blocks of at most GEMM_Q, which differs from processor to processor, and the
// last two into halves: with one thread into multiples of its kernel's height.
// Source: interface, driver/level3/level3.c and level3_thread.c of OpenBLAS 0.3.
std::vector<int> blocks_of_openblas(int k, int q, bool has_threads) {
  constexpr int kHeight = 16;
  std::vector<int> blocks;
  while (k > 0) {
    int block = k;
    if (k >= 2 * q) {
      block = q;
    } else if (k > q) {
      block = has_threads ? (k + 1) / 2 : (k / 2 + kHeight - 1) / kHeight * kHeight;
    }
    blocks.push_back(block);
    k -= block;
  }
  return blocks;
}

std::vector<std::vector<int>> candidate_blocks(int k) {
  std::vector<std::vector<int>> all = {{k}};
  const auto add = [&](std::vector<int> blocks) {
    if (std::find(all.begin(), all.end(), blocks) == all.end()) {
      all.push_back(std::move(blocks));
    }
  };
  for (const int q : {320, 384, 448, 352, 512, 256, 240, 192}) {
    add(blocks_of_openblas(k, q, /*has_threads=*/false));
    add(blocks_of_openblas(k, q, /*has_threads=*/true));
  }
  add(blocks_without_packing(k));
  return all;
}

bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Matrices of random numbers: in each element, another order of summation shows. And others, in
// which the first elements are sums of negative products too small for a float: there it shows
// whether they were added to zero.
class Probe {
 public:
  explicit Probe(const GemmShape& shape)
      : a_(random(shape.lda, shape.transpose_a ? shape.m : shape.k)),
        b_(random(shape.ldb, shape.transpose_b ? shape.k : shape.n)),
        c_(random(shape.ldc, shape.n)),
        a_with_tiny_(a_),
        b_with_tiny_(b_) {
    for (int k = 0; k < shape.k; ++k) {
      for (int i = 0; i < std::min(shape.m, kTiny); ++i) {
        float& factor = a_with_tiny_[place(i, k, shape.lda, shape.transpose_a)];
        factor = -std::fabs(factor) * kScale;
      }
      for (int j = 0; j < std::min(shape.n, kTiny); ++j) {
        float& factor = b_with_tiny_[place(k, j, shape.ldb, shape.transpose_b)];
        factor = std::fabs(factor) * kScale;
      }
    }
  }

  struct Results {
    std::vector<float> ordinary;
    std::vector<float> with_tiny;

    /// Whether sums are added to zero, where they are not added to the result.
    bool are_added_to_zero() const {
      const float first = with_tiny.front();
      return first != 0.0F || !std::signbit(first);
    }
  };

  Results results_of(const Gemm& gemm) const {
    return {result_of(gemm, a_, b_), result_of(gemm, a_with_tiny_, b_with_tiny_)};
  }

  bool gives(const Gemm& gemm, const Results& expected) const {
    return same_bytes(result_of(gemm, a_, b_), expected.ordinary) &&
           same_bytes(result_of(gemm, a_with_tiny_, b_with_tiny_), expected.with_tiny);
  }

  // In turns, so that a slow moment of the machine is everyone's, and as in a step: this thread has
  // just written what is read, so that it is in no other thread's cache, and those are asleep. What
  // waking them takes varies: the middle of several rounds counts.
  Gemm fastest_of(const std::vector<Gemm>& ways) const {
    constexpr size_t kRounds = 7;
    std::vector<float> a = a_;
    std::vector<float> b = b_;
    std::vector<float> c = c_;
    std::vector<std::array<double, kRounds>> seconds(ways.size());
    for (size_t round = 0; round < kRounds; ++round) {
      for (size_t i = 0; i < ways.size(); ++i) {
        std::copy(a_.begin(), a_.end(), a.begin());
        std::copy(b_.begin(), b_.end(), b.begin());
        std::copy(c_.begin(), c_.end(), c.begin());
        let_threads_sleep();
        const Stopwatch watch;
        ways[i].run(a.data(), b.data(), c.data());
        seconds[i][round] = watch.seconds();
      }
    }
    for (std::array<double, kRounds>& of_way : seconds) {
      std::sort(of_way.begin(), of_way.end());
    }
    const auto is_faster = [](const auto& one, const auto& other) {
      return one[kRounds / 2] < other[kRounds / 2];
    };
    const auto fastest = std::min_element(seconds.begin(), seconds.end(), is_faster);
    return ways[static_cast<size_t>(fastest - seconds.begin())];
  }

 private:
  // Waking them, and their cores where those have stopped, can take longer than a product.
  static void let_threads_sleep() {
    constexpr double kSeconds = 3e-4;
    const Stopwatch watch;
    while (at::get_num_threads() > 1 && watch.seconds() < kSeconds) {
    }
  }

  // Few: arithmetic with such numbers is slow.
  static constexpr int kTiny = 4;
  static constexpr float kScale = 5e-24F;

  // Of an element of op(x).
  static size_t place(int row, int column, int leading, bool transposed) {
    return transposed ? static_cast<size_t>(row) * static_cast<size_t>(leading) +
                            static_cast<size_t>(column)
                      : static_cast<size_t>(column) * static_cast<size_t>(leading) +
                            static_cast<size_t>(row);
  }

  std::vector<float> result_of(const Gemm& gemm,
                               const std::vector<float>& a,
                               const std::vector<float>& b) const {
    std::vector<float> c = c_;
    gemm.run(a.data(), b.data(), c.data());
    return c;
  }

  std::vector<float> random(int leading, int columns) {
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<size_t>(leading) * static_cast<size_t>(columns));
    std::generate(values.begin(), values.end(), [&] { return normal(engine_); });
    return values;
  }

  std::minstd_rand engine_;
  std::vector<float> a_;
  std::vector<float> b_;
  std::vector<float> c_;
  std::vector<float> a_with_tiny_;
  std::vector<float> b_with_tiny_;
};

// Ways to compute a product, by who does it: one for each of the blocks that may have the bits.
std::vector<Gemm> ways_of_onednn(const GemmShape& shape, bool adds_to_zero) {
  std::vector<Gemm> ways;
  if (blas::onednn_sgemm() != nullptr) {
    for (const std::vector<int>& blocks : candidate_blocks(shape.k)) {
      ways.push_back(Gemm::by_onednn(shape, {blocks, adds_to_zero}));
    }
  }
  return ways;
}

std::vector<Gemm> ways_of_panels(const GemmShape& shape, bool adds_to_zero) {
  std::vector<Gemm> ways;
  for (const std::vector<int>& blocks : candidate_blocks(shape.k)) {
    if (can_multiply_panels(shape, blocks)) {
      ways.push_back(Gemm::by_panels(shape, {blocks, adds_to_zero}));
    }
  }
  return ways;
}

std::vector<Gemm> alone(std::vector<Gemm> ways) {
  std::transform(
      ways.begin(), ways.end(), ways.begin(), [](const Gemm& gemm) { return gemm.alone(); });
  return ways;
}

// With one thread both are the same, and no way needs to be told so.
bool may_be_together(const GemmShape& shape) {
  return !shape.is_part || at::get_num_threads() == 1;
}

// Of larger products each thread has so much to do that waking it does not matter.
bool may_be_alone(const GemmShape& shape) {
  constexpr int64_t kLarge = 1 << 27;  // multiplications: a millisecond
  const bool is_small = int64_t{shape.m} * shape.n * shape.k < kLarge;
  return at::get_num_threads() > 1 && (shape.is_part || is_small);
}

// BLAS by itself needs no probe.
bool has_rivals(const GemmShape& shape) {
  return may_be_alone(shape) || blas::onednn_sgemm() != nullptr ||
         !ways_of_panels(shape, /*adds_to_zero=*/true).empty();
}

// The first of the ways that gives these bytes, or none.
std::optional<Gemm> way_to(const Probe::Results& expected,
                           const std::vector<Gemm>& ways,
                           const Probe& probe) {
  const auto way = std::find_if(
      ways.begin(), ways.end(), [&](const Gemm& gemm) { return probe.gives(gemm, expected); });
  return way != ways.end() ? std::optional<Gemm>(*way) : std::nullopt;
}

// Of all ways that give the bits of `reference`. It may be that no part alone has them: then the
// operator that the kernel stands for runs, or its bits are free.
Gemm fastest_like(const Gemm& reference, const GemmShape& shape, const Probe& probe) {
  const Probe::Results expected = probe.results_of(reference);
  const bool adds_to_zero = expected.are_added_to_zero();
  const std::vector<std::vector<Gemm>> rivals = {{Gemm::by_blas(shape)},
                                                 ways_of_onednn(shape, adds_to_zero),
                                                 ways_of_panels(shape, adds_to_zero)};
  std::vector<Gemm> equal;
  const auto add_first_of = [&](const std::vector<Gemm>& ways) {
    if (const std::optional<Gemm> way = way_to(expected, ways, probe)) {
      equal.push_back(*way);
    }
  };
  if (may_be_together(shape)) {
    equal.push_back(reference);
    std::for_each(rivals.begin(), rivals.end(), add_first_of);
  }
  if (may_be_alone(shape)) {
    for (const std::vector<Gemm>& ways : rivals) {
      add_first_of(alone(ways));
    }
  }
  return equal.empty() ? reference.alone() : probe.fastest_of(equal);
}

Gemm find_exact(const GemmShape& shape, const Probe& probe) {
  return fastest_like(Gemm::by_blas(shape), shape, probe);
}

// Rondo's own way to the bits of BLAS, or none.
std::optional<Gemm> find_panels(const GemmShape& shape, const Probe& probe) {
  const Probe::Results of_blas = probe.results_of(Gemm::by_blas(shape));
  return way_to(of_blas, ways_of_panels(shape, of_blas.are_added_to_zero()), probe);
}

// Whose bits a product has that may have any.
Gemm reference_of_fast(const GemmShape& shape, const Probe& probe) {
  // Columns below which libraries pack more than pays.
  constexpr int kFewColumns = 256;
  std::vector<int> blocks = blocks_of_openblas(shape.k, kDeepestPanel, /*has_threads=*/false);
  if (shape.n <= kFewColumns && can_multiply_panels(shape, blocks)) {
    // With BLAS's bits, more can compete.
    return find_panels(shape, probe) ? Gemm::by_blas(shape)
                                     : Gemm::by_panels(shape, {std::move(blocks)});
  }
  constexpr int64_t kSmall = 1 << 16;  // multiplications; oneDNN takes longer to begin
  const bool is_small = int64_t{shape.m} * shape.n * shape.k < kSmall;
  const bool is_gradient_of_weights = shape.transpose_b && !shape.transpose_a;
  return is_small || is_gradient_of_weights || blas::onednn_sgemm() == nullptr
             ? Gemm::by_blas(shape)
             : Gemm::by_onednn(shape, {{shape.k}});
}

Gemm find_fast(const GemmShape& shape, const Probe& probe) {
  return fastest_like(reference_of_fast(shape, probe), shape, probe);
}

Gemm find_like_without_packing(const GemmShape& shape, const Probe& probe) {
  const Summation summation = {blocks_without_packing(shape.k), /*adds_to_zero=*/true};
  return fastest_like(Gemm::by_panels(shape, summation), shape, probe);
}

template <auto find>
auto remembered(const GemmShape& shape) {
  using Found = decltype(find(shape, std::declval<const Probe&>()));
  static std::mutex mutex;
  static std::map<std::pair<int, GemmShape>, Found> known;
  const std::lock_guard<std::mutex> lock(mutex);
  const std::pair<int, GemmShape> key{at::get_num_threads(), shape};
  const auto found = known.find(key);
  return found != known.end() ? found->second
                              : known.emplace(key, find(shape, Probe(shape))).first->second;
}

}  // namespace

void Gemm::run(const float* a, const float* b, float* c) const {
  if (!is_alone_) {
    return run_as_it_is(a, b, c);
  }
  const OnThisThread scope;
  run_as_it_is(a, b, c);
}

void Gemm::run_as_it_is(const float* a, const float* b, float* c) const {
  switch (by_) {
    case By::Blas:
      return run_blas(a, b, c);
    case By::OneDnn:
      return run_onednn(a, b, c);
    case By::Panels:
      return multiply_panels(shape_, summation_, a, b, c);
  }
}

void Gemm::run_blas(const float* a, const float* b, float* c) const {
  const float one = 1.0F;
  blas::sgemm()(shape_.transpose_a ? "T" : "N",
                shape_.transpose_b ? "T" : "N",
                &shape_.m,
                &shape_.n,
                &shape_.k,
                &one,
                a,
                &shape_.lda,
                b,
                &shape_.ldb,
                &shape_.beta,
                c,
                &shape_.ldc);
}

void Gemm::run_onednn(const float* a, const float* b, float* c) const {
  // Row by row, the product is the transposed one: op(b)^T · op(a)^T.
  float beta = shape_.beta;
  if (beta == 0.0F && summation_.adds_to_zero) {
    for (int j = 0; j < shape_.n; ++j) {
      std::fill_n(c + static_cast<ptrdiff_t>(j) * shape_.ldc, shape_.m, 0.0F);
    }
    beta = 1.0F;
  }
  for (const int block : summation_.blocks) {
    blas::onednn_sgemm()(shape_.transpose_b ? 'T' : 'N',
                         shape_.transpose_a ? 'T' : 'N',
                         shape_.n,
                         shape_.m,
                         block,
                         1.0F,
                         b,
                         shape_.ldb,
                         a,
                         shape_.lda,
                         beta,
                         c,
                         shape_.ldc);
    a += static_cast<ptrdiff_t>(block) * (shape_.transpose_a ? 1 : shape_.lda);
    b += static_cast<ptrdiff_t>(block) * (shape_.transpose_b ? shape_.ldb : 1);
    beta = 1.0F;
  }
}

Gemm exact_gemm(const GemmShape& shape) {
  return has_rivals(shape) ? remembered<find_exact>(shape) : Gemm::by_blas(shape);
}

Gemm fast_gemm(const GemmShape& shape) {
  return has_rivals(shape) ? remembered<find_fast>(shape) : Gemm::by_blas(shape);
}

std::optional<Summation> panels_like_exact(const GemmShape& shape) {
  const auto panels = has_rivals(shape) ? remembered<find_panels>(shape) : std::nullopt;
  return panels ? std::optional(panels->summation()) : std::nullopt;
}

std::vector<int> blocks_without_packing(int k) {
  constexpr int kLongest = 384;
  std::vector<int> blocks;
  while (k > 0) {
    int block = k;
    if (k >= 2 * kLongest) {
      block = kLongest;
    } else if (k > kLongest) {
      block = (k + 1) / 2;
    }
    blocks.push_back(block);
    k -= block;
  }
  return blocks;
}

Gemm gemm_without_packing(const GemmShape& shape) {
  return remembered<find_like_without_packing>(shape);
}

}  // namespace rondo
