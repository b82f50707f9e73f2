#include "data/audio/spectrogram.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace rondo;

namespace {

constexpr double kPi = 3.14159265358979323846;

std::vector<float> tone(double hertz, int64_t rate, int64_t frames) {
  std::vector<float> values(static_cast<size_t>(frames));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(
        std::sin(2.0 * kPi * hertz * static_cast<double>(i) / static_cast<double>(rate)));
  }
  return values;
}

}  // namespace

TEST_SUITE_BEGIN("data/spectrogram");

TEST_CASE("the power of a window is that of the sum over its frames, frequency by frequency") {
  const std::vector<float> sound = {0.5F, -1.0F, 0.25F, 0.75F, -0.5F, 1.0F, 0.0F, 0.125F, 2.0F};
  SpectrogramShape shape;
  shape.window = 8;
  shape.hop = 1;
  const std::vector<float> power = spectrogram(sound, shape, 8000);
  REQUIRE(shape.columns(9) == 2);
  REQUIRE(power.size() == 10);
  for (int column = 0; column < 2; ++column) {
    for (int f = 0; f < 5; ++f) {
      double real = 0.0;
      double imaginary = 0.0;
      for (int i = 0; i < 8; ++i) {
        const double hann = 0.5 - 0.5 * std::cos(2.0 * kPi * i / 8.0);
        const double value = hann * static_cast<double>(sound[static_cast<size_t>(column + i)]);
        real += value * std::cos(2.0 * kPi * f * i / 8.0);
        imaginary -= value * std::sin(2.0 * kPi * f * i / 8.0);
      }
      CHECK(power[static_cast<size_t>(f * 2 + column)] ==
            doctest::Approx(real * real + imaginary * imaginary));
    }
  }
}

TEST_CASE("a tone has its power in its frequency, and in the band of the mel scale around it") {
  SpectrogramShape shape;
  shape.window = 256;
  shape.hop = 128;
  const std::vector<float> sound = tone(1000.0, 8000, 1024);
  const int64_t columns = shape.columns(1024);
  CHECK(columns == 7);
  const auto loudest = [&](const std::vector<float>& power, int64_t rows) {
    int64_t best = 0;
    for (int64_t row = 0; row < rows; ++row) {
      if (power[static_cast<size_t>(row * columns)] > power[static_cast<size_t>(best * columns)]) {
        best = row;
      }
    }
    return best;
  };
  CHECK(loudest(spectrogram(sound, shape, 8000), shape.rows()) == 32);  // 1000 Hz · 256 / 8000
  shape.bands = 20;
  // 1000 Hz are 1000 mel, of 2146 in 21 steps: between the centres of bands 8 and 9, from 0.
  const int64_t band = loudest(spectrogram(sound, shape, 8000), shape.rows());
  CHECK((band == 8 || band == 9));
}

TEST_CASE("a sound that is shorter than a window ends in zeros") {
  SpectrogramShape shape;
  shape.window = 16;
  CHECK(shape.columns(3) == 1);
  CHECK(spectrogram({1.0F, 1.0F, 1.0F}, shape, 8000).size() == 9);
}

TEST_SUITE_END();
