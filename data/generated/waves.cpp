#include "data/generated/waves.h"

#include <ATen/ops/empty.h>

#include <cmath>

#include "core/random.h"
#include "core/registry.h"
#include "core/require.h"
#include "data/internal/rows.h"
#include "data/register.h"

namespace rondo {

namespace {

constexpr double kTurn = 6.283185307179586;  // 2π

struct Wave {
  double size;
  double period;  ///< steps
  double phase;

  double at(double step) const { return size * std::sin(kTurn * step / period + phase); }
};

Wave drawn(double shortest, double longest, KeyedRandom& random) {
  Wave wave{};
  wave.size = 0.3 + 0.7 * random.uniform();
  wave.period = shortest + (longest - shortest) * random.uniform();
  wave.phase = kTurn * random.uniform();
  return wave;
}

}  // namespace

Waves::Waves(const Options& options) {
  detail::require(options.size >= 1, "Waves: size", ">= 1", options.size);
  detail::require(options.window >= 1, "Waves: window", ">= 1", options.window);
  detail::require(options.horizon >= 1, "Waves: horizon", ">= 1", options.horizon);
  detail::require(options.noise >= 0, "Waves: noise", ">= 0", options.noise);
  detail::require(options.split == "train" || options.split == "val",
                  "Waves: split",
                  "\"train\" or \"val\"",
                  options.split);
  series_ = at::empty({options.size, options.window}, at::kFloat);
  target_ = at::empty({options.size, options.horizon}, at::kFloat);
  const uint64_t split = options.split == "train" ? 0 : 1;
  for (int64_t i = 0; i < options.size; ++i) {
    KeyedRandom random(options.seed, split, static_cast<uint64_t>(i));
    const Wave quick = drawn(6.0, 12.0, random);
    const Wave slow = drawn(20.0, 40.0, random);
    const double trend = 0.02 * (random.uniform() - 0.5);
    float* const seen = series_.data_ptr<float>() + i * options.window;
    float* const follows = target_.data_ptr<float>() + i * options.horizon;
    for (int64_t t = 0; t < options.window + options.horizon; ++t) {
      const auto step = static_cast<double>(t);
      const double value =
          quick.at(step) + slow.at(step) + trend * step + options.noise * random.normal();
      float& place = t < options.window ? seen[t] : follows[t - options.window];
      place = static_cast<float>(value);
    }
  }
}

Sample Waves::get(int64_t index) const {
  return detail::only_sample(get_batch({index}));
}

Batch Waves::get_batch(const std::vector<int64_t>& indices) const {
  return {{"series", detail::gather_rows(series_, indices)},
          {"target", detail::gather_rows(target_, indices)}};
}

void register_waves(Registry<DataSource>& registry) {
  using Options = Waves::Options;
  registry.add<Waves>("Waves", "Generated time series with what follows; needs no file.")
      .key("size", &Options::size, at_least(1), "number of series")
      .key("window", &Options::window, at_least(1), "steps that are seen")
      .key("horizon", &Options::horizon, at_least(1), "steps that follow")
      .key("noise", &Options::noise, at_least(0), "standard deviation of a step's noise")
      .key("split",
           &Options::split,
           one_of({"train", "val"}),
           "which of two disjoint sets of series")
      .key("seed", &Options::seed, "another seed draws other series");
}

}  // namespace rondo
