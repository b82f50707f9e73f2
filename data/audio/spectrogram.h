#pragma once

#include <cstdint>
#include <vector>

namespace rondo {

/// Windows of a sound as the power of their frequencies.
struct SpectrogramShape {
  int64_t window = 512;  ///< frames, a power of two >= 2
  int64_t hop = 256;     ///< frames from one window to the next, >= 1
  int64_t bands = 0;     ///< of the mel scale; 0: the window / 2 + 1 frequencies themselves

  int64_t rows() const { return bands > 0 ? bands : window / 2 + 1; }

  /// Whole windows of so many frames; at least one, which zeros fill up.
  int64_t columns(int64_t frames) const;
};

/// The power of each frequency in each window, under a Hann window: [rows, columns]. Bands are
/// triangles that overlap by half, spaced evenly on the mel scale.
/// \param sample_rate  frames a second; of no importance without bands
/// Source: Oppenheim and Schafer, Discrete-Time Signal Processing, 10.3; O'Shaughnessy 1987 (mel)
std::vector<float> spectrogram(const std::vector<float>& sound,
                               const SpectrogramShape& shape,
                               int64_t sample_rate);

}  // namespace rondo
