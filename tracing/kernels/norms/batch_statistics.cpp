// Compiled with -ffp-contract=off (tracing/CMakeLists.txt): what LibTorch's AVX2 build fuses is
// written as `fma`. See core/vector_loop.h.

#include "tracing/kernels/norms/batch_statistics.h"

#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "tracing/kernels/lanes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rondo {

namespace {

// In LibTorch's order each addition waits for the last one. Eight channels side by side keep the
// order of each and do not wait.
constexpr int64_t kChains = kLanes;

using Doubles = double __attribute__((vector_size(4 * sizeof(double))));

void finish(const BatchStatistics& s, int64_t channel, float mean, float squares) {
  const int64_t n = s.shape.per_channel();
  const double variance = squares / static_cast<float>(n);
  const float unbiased = squares / static_cast<float>(n - 1);
  s.mean[channel] = mean;
  s.inverse_deviation[channel] = static_cast<float>(1.0 / std::sqrt(variance + s.eps));
  s.running_mean[channel] = s.momentum * mean + (1.0F - s.momentum) * s.running_mean[channel];
  s.running_var[channel] =
      static_cast<float>(static_cast<double>(s.momentum) * static_cast<double>(unbiased) +
                         static_cast<double>((1.0F - s.momentum) * s.running_var[channel]));
}

float mean_of(double sum, int64_t count) {
  return static_cast<float>(sum / static_cast<double>(count));
}

/// What is added up: x, or the square of its distance from the mean.
enum class Term { Itself, SquaredDistance };

template <Term kTerm>
RONDO_INLINE float term_of(float x, float mean) {
  const float distance = x - mean;
  return kTerm == Term::Itself ? x : distance * distance;
}

template <Term kTerm>
RONDO_AVX2 RONDO_INLINE Lanes term_of(Lanes x, Lanes mean) {
  const Lanes distance = x - mean;
  return kTerm == Term::Itself ? x : distance * distance;
}

template <Term kTerm>
double sum_of_channel(const BatchStatistics& s, int64_t channel, float mean) {
  double sum = 0.0;
  for (int64_t n = 0; n < s.shape.batch; ++n) {
    const float* const x = s.x + (n * s.shape.channels + channel) * s.shape.image;
    for (int64_t i = 0; i < s.shape.image; ++i) {
      sum += static_cast<double>(term_of<kTerm>(x[i], mean));
    }
  }
  return sum;
}

void collect_channel(const BatchStatistics& s, int64_t channel) {
  const float mean = mean_of(sum_of_channel<Term::Itself>(s, channel, 0.0F), s.shape.per_channel());
  finish(s,
         channel,
         mean,
         static_cast<float>(sum_of_channel<Term::SquaredDistance>(s, channel, mean)));
}

/// The sums of eight channels, in the order of the channels.
struct BundleSums {
  Doubles first = {};
  Doubles last = {};

  double operator[](int64_t k) const { return k < 4 ? first[k] : last[k - 4]; }
};

// GCC converts pairs where it is told to convert four.
RONDO_AVX2 RONDO_INLINE Doubles first_half(Lanes lanes) {
#if defined(__x86_64__)
  return _mm256_cvtps_pd(_mm256_castps256_ps128(lanes));
#else
  return Doubles{lanes[0], lanes[1], lanes[2], lanes[3]};
#endif
}

RONDO_AVX2 RONDO_INLINE Doubles last_half(Lanes lanes) {
#if defined(__x86_64__)
  return _mm256_cvtps_pd(_mm256_extractf128_ps(lanes, 1));
#else
  return Doubles{lanes[4], lanes[5], lanes[6], lanes[7]};
#endif
}

/// Adds eight elements of each of four channels, one after the other.
RONDO_AVX2 RONDO_INLINE void add_in_order(const Lanes* rows, Doubles& sums) {
  Lanes columns[4];
  turn(rows, columns);
  for (const Lanes column : columns) {
    sums += first_half(column);
  }
  for (const Lanes column : columns) {
    sums += last_half(column);
  }
}

template <Term kTerm>
RONDO_AVX2 BundleSums sums_of_bundle(const BatchStatistics& s,
                                     int64_t channel,
                                     const float* means) {
  const int64_t image = s.shape.image;
  BundleSums sums;
  for (int64_t n = 0; n < s.shape.batch; ++n) {
    const float* const x = s.x + (n * s.shape.channels + channel) * image;
    int64_t i = 0;
    for (; i + kLanes <= image; i += kLanes) {
      Lanes rows[kChains];
      for (int64_t k = 0; k < kChains; ++k) {
        rows[k] = term_of<kTerm>(load(x + k * image + i), means[k] - Lanes{});
      }
      add_in_order(rows, sums.first);
      add_in_order(rows + 4, sums.last);
    }
    for (; i < image; ++i) {
      for (int64_t k = 0; k < 4; ++k) {
        sums.first[k] += static_cast<double>(term_of<kTerm>(x[k * image + i], means[k]));
        sums.last[k] += static_cast<double>(term_of<kTerm>(x[(k + 4) * image + i], means[k + 4]));
      }
    }
  }
  return sums;
}

void collect_bundle(const BatchStatistics& s, int64_t channel) {
  float means[kChains] = {};
  const BundleSums sums = sums_of_bundle<Term::Itself>(s, channel, means);
  for (int64_t k = 0; k < kChains; ++k) {
    means[k] = mean_of(sums[k], s.shape.per_channel());
  }
  const BundleSums squares = sums_of_bundle<Term::SquaredDistance>(s, channel, means);
  for (int64_t k = 0; k < kChains; ++k) {
    finish(s, channel + k, means[k], static_cast<float>(squares[k]));
  }
}

/// Where bundles of channels lie in an image whose channels lie side by side in blocks.
struct BundlesInBlocks {
  ImageShape shape;
  int64_t block;

  int64_t begin(int64_t example, int64_t bundle) const {
    const int64_t channel = bundle * kChains;
    return (example * shape.channels + channel - channel % block) * shape.image + channel % block;
  }
};

/// Adds up kCount bundles side by side, from `first` on: the more, the less an addition waits.
template <Term kTerm, int64_t kCount>
RONDO_AVX2 void add_bundles(const BatchStatistics& s,
                            const BundlesInBlocks& bundles,
                            int64_t first,
                            const float* means,
                            BundleSums* sums) {
  Lanes centres[kCount];
  BundleSums local[kCount];
  for (int64_t k = 0; k < kCount; ++k) {
    centres[k] = load(means + k * kChains);
  }
  for (int64_t n = 0; n < s.shape.batch; ++n) {
    const float* x[kCount];
    for (int64_t k = 0; k < kCount; ++k) {
      x[k] = s.x + bundles.begin(n, first + k);
    }
    for (int64_t i = 0; i < s.shape.image; ++i) {
      for (int64_t k = 0; k < kCount; ++k) {
        const Lanes term = term_of<kTerm>(load(x[k] + i * bundles.block), centres[k]);
        local[k].first += first_half(term);
        local[k].last += last_half(term);
      }
    }
  }
  std::copy_n(local, kCount, sums);
}

template <int64_t kCount>
void collect_bundles(const BatchStatistics& s, const BundlesInBlocks& bundles, int64_t first) {
  float means[kCount * kChains] = {};
  BundleSums sums[kCount];
  add_bundles<Term::Itself, kCount>(s, bundles, first, means, sums);
  for (int64_t k = 0; k < kCount * kChains; ++k) {
    means[k] = mean_of(sums[k / kChains][k % kChains], s.shape.per_channel());
  }
  add_bundles<Term::SquaredDistance, kCount>(s, bundles, first, means, sums);
  for (int64_t k = 0; k < kCount * kChains; ++k) {
    const auto squares = static_cast<float>(sums[k / kChains][k % kChains]);
    finish(s, first * kChains + k, means[k], squares);
  }
}

/// Of x - mean, or of its squares.
RONDO_AVX2 double sum_in_lanes(const BatchStatistics& s,
                               int64_t channel,
                               float mean,
                               bool squares) {
  constexpr int64_t kSums = 4;
  const Lanes means = mean - Lanes{};
  double sum = 0.0;
  for (int64_t n = 0; n < s.shape.batch; ++n) {
    const float* const x = s.x + (n * s.shape.channels + channel) * s.shape.image;
    Lanes sums[kSums] = {};
    int64_t i = 0;
    for (; i + kSums * kLanes <= s.shape.image; i += kSums * kLanes) {
      for (int64_t k = 0; k < kSums; ++k) {
        const Lanes centred = load(x + i + k * kLanes) - means;
        sums[k] = squares ? fused(centred, centred, sums[k]) : sums[k] + centred;
      }
    }
    float rest = 0.0F;
    for (; i < s.shape.image; ++i) {
      const float centred = x[i] - mean;
      rest += squares ? centred * centred : centred;
    }
    sum += static_cast<double>(added_up((sums[0] + sums[1]) + (sums[2] + sums[3])) + rest);
  }
  return sum;
}

}  // namespace

ImageShape image_shape(const Slot& x) {
  return {x.sizes[0], x.sizes[1], numel(x) / (x.sizes[0] * x.sizes[1])};
}

void collect(const BatchStatistics& s) {
  const bool has_vectors = widest_instruction_set() == InstructionSet::Avx2;
  const int64_t channels = s.shape.channels;
  const int64_t bundles = (channels + kChains - 1) / kChains;
  parallel_for_each(bundles, kChains * s.shape.per_channel(), [&](int64_t bundle) {
    const int64_t first = bundle * kChains;
    if (has_vectors && first + kChains <= channels) {
      collect_bundle(s, first);
      return;
    }
    for (int64_t channel = first; channel < std::min(first + kChains, channels); ++channel) {
      collect_channel(s, channel);
    }
  });
}

void collect_in_lanes(const BatchStatistics& s) {
  parallel_for_each(s.shape.channels, s.shape.per_channel(), [&](int64_t channel) {
    const float mean =
        mean_of(sum_in_lanes(s, channel, 0.0F, /*squares=*/false), s.shape.per_channel());
    finish(s, channel, mean, static_cast<float>(sum_in_lanes(s, channel, mean, /*squares=*/true)));
  });
}

void collect_in_blocks(const BatchStatistics& s, int64_t block) {
  const BundlesInBlocks bundles = {s.shape, block};
  parallel_for(s.shape.channels / kChains,
               grain_of(kChains * s.shape.per_channel()),
               [&](int64_t begin, int64_t end) {
                 int64_t bundle = begin;
                 for (; bundle + 4 <= end; bundle += 4) {
                   collect_bundles<4>(s, bundles, bundle);
                 }
                 for (; bundle + 2 <= end; bundle += 2) {
                   collect_bundles<2>(s, bundles, bundle);
                 }
                 for (; bundle < end; ++bundle) {
                   collect_bundles<1>(s, bundles, bundle);
                 }
               });
}

BatchStatistics BatchNormOperands::statistics() const {
  return {x.as<float>(),
          shape,
          momentum,
          eps,
          running_mean.as<float>(),
          running_var.as<float>(),
          mean.as<float>(),
          inverse_deviation.as<float>()};
}

Normalisation BatchNormOperands::normalisation(int64_t channel) const {
  const float scale = inverse_deviation.as<float>()[channel] * weight.as<float>()[channel];
  return {scale, std::fma(-mean.as<float>()[channel], scale, bias.as<float>()[channel])};
}

}  // namespace rondo
