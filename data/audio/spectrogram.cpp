#include "data/audio/spectrogram.h"

#include <algorithm>
#include <cmath>
#include <complex>

namespace rondo {

namespace {

constexpr double kPi = 3.14159265358979323846;

using Complex = std::complex<double>;

/// In place; the size is a power of two. Source: Cooley and Tukey 1965.
void transform(std::vector<Complex>& values) {
  const size_t size = values.size();
  for (size_t i = 1, j = 0; i < size; ++i) {
    size_t bit = size >> 1U;
    for (; (j & bit) != 0; bit >>= 1U) {
      j ^= bit;
    }
    j ^= bit;
    if (i < j) {
      std::swap(values[i], values[j]);
    }
  }
  for (size_t length = 2; length <= size; length *= 2) {
    const double turn = -2.0 * kPi / static_cast<double>(length);
    for (size_t k = 0; k < length / 2; ++k) {
      const Complex factor = std::polar(1.0, turn * static_cast<double>(k));
      for (size_t begin = 0; begin < size; begin += length) {
        Complex& a = values[begin + k];
        Complex& b = values[begin + k + length / 2];
        const Complex product = factor * b;
        b = a - product;
        a += product;
      }
    }
  }
}

double mel_of(double hertz) {
  return 2595.0 * std::log10(1.0 + hertz / 700.0);
}

double hertz_of(double mel) {
  return 700.0 * (std::pow(10.0, mel / 2595.0) - 1.0);
}

/// The weights of each frequency in each band: [bands, frequencies].
std::vector<double> mel_weights(const SpectrogramShape& shape, int64_t sample_rate) {
  const int64_t frequencies = shape.window / 2 + 1;
  const double highest = mel_of(static_cast<double>(sample_rate) / 2);
  std::vector<double> corners;
  for (int64_t i = 0; i < shape.bands + 2; ++i) {
    corners.push_back(
        hertz_of(highest * static_cast<double>(i) / static_cast<double>(shape.bands + 1)));
  }
  std::vector<double> weights(static_cast<size_t>(shape.bands * frequencies));
  for (int64_t band = 0; band < shape.bands; ++band) {
    const auto at = static_cast<size_t>(band);
    for (int64_t f = 0; f < frequencies; ++f) {
      const double hertz = static_cast<double>(f) * static_cast<double>(sample_rate) /
                           static_cast<double>(shape.window);
      const double rising = (hertz - corners[at]) / (corners[at + 1] - corners[at]);
      const double falling = (corners[at + 2] - hertz) / (corners[at + 2] - corners[at + 1]);
      weights[static_cast<size_t>(band * frequencies + f)] =
          std::max(0.0, std::min(rising, falling));
    }
  }
  return weights;
}

std::vector<double> hann(int64_t window) {
  std::vector<double> weights(static_cast<size_t>(window));
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] =
        0.5 - 0.5 * std::cos(2.0 * kPi * static_cast<double>(i) / static_cast<double>(window));
  }
  return weights;
}

}  // namespace

int64_t SpectrogramShape::columns(int64_t frames) const {
  return frames <= window ? 1 : 1 + (frames - window) / hop;
}

std::vector<float> spectrogram(const std::vector<float>& sound,
                               const SpectrogramShape& shape,
                               int64_t sample_rate) {
  const auto frames = static_cast<int64_t>(sound.size());
  const int64_t columns = shape.columns(frames);
  const int64_t frequencies = shape.window / 2 + 1;
  const std::vector<double> window = hann(shape.window);
  const std::vector<double> mel =
      shape.bands > 0 ? mel_weights(shape, sample_rate) : std::vector<double>();
  std::vector<float> result(static_cast<size_t>(shape.rows() * columns));
  std::vector<Complex> values(window.size());
  std::vector<double> power(static_cast<size_t>(frequencies));
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t i = 0; i < shape.window; ++i) {
      const int64_t at = column * shape.hop + i;
      const auto number = static_cast<size_t>(i);
      values[number] = at < frames ? window[number] * sound[static_cast<size_t>(at)] : 0.0;
    }
    transform(values);
    for (size_t f = 0; f < power.size(); ++f) {
      power[f] = std::norm(values[f]);
    }
    for (int64_t row = 0; row < shape.rows(); ++row) {
      double sum = shape.bands > 0 ? 0.0 : power[static_cast<size_t>(row)];
      for (int64_t f = 0; shape.bands > 0 && f < frequencies; ++f) {
        sum += mel[static_cast<size_t>(row * frequencies + f)] * power[static_cast<size_t>(f)];
      }
      result[static_cast<size_t>(row * columns + column)] = static_cast<float>(sum);
    }
  }
  return result;
}

}  // namespace rondo
