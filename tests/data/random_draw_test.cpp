#include <ATen/CPUGeneratorImpl.h>
#include <doctest/doctest.h>
#include <torch/types.h>

#include <functional>
#include <string>
#include <vector>

#include "core/log.h"
#include "core/random.h"
#include "data/data_loader.h"

using namespace rondo;

namespace {

/// What a sample is made of.
using Maker = std::function<at::Tensor(int64_t)>;

struct Made final : Dataset {
  struct Options {
    Maker make = {};
  };

  explicit Made(const Options& options) : o(options) {}

  int64_t size() const override { return 8; }

  Sample get(int64_t index) const override { return {{"x", o.make(index)}}; }

  Options o;
};

struct MadeInARow final : IterableDataset {
  struct Options {
    Maker make = {};
  };

  explicit MadeInARow(const Options& options) : o(options) {}

  void start(int64_t) override { index = 0; }

  std::optional<Sample> next() override {
    return index == 8 ? std::nullopt : std::optional(Sample{{"x", o.make(index++)}});
  }

  Options o;
  int64_t index = 0;
};

/// Warnings of two passes over the data.
std::vector<std::string> warnings_of(const DataLoader& loader) {
  std::vector<std::string> warnings;
  const TextLog log = TextLog::to([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::Warning) {
      warnings.emplace_back(text);
    }
  });
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    const auto stream = loader.stream({epoch, 0}, 1);
    while (stream->next()) {
    }
    warn_of_random_numbers(log, loader);
  }
  return warnings;
}

}  // namespace

TEST_SUITE_BEGIN("data/random_draw");

TEST_CASE("a data set that draws from the default generator is warned of once, by name") {
  const std::vector<Maker> makers = {
      [](int64_t) { return torch::randn({2}); },
      [](int64_t) { return torch::rand({2}) + 1; },
      [](int64_t) { return torch::randint(5, {2}); },
      [](int64_t) { return torch::randperm(3); },
      [](int64_t) { return torch::zeros({2}).bernoulli_(0.5); },
      [](int64_t) { return torch::dropout(torch::ones({2}), 0.5, true); },
  };
  for (size_t i = 0; i < makers.size(); ++i) {
    for (const int64_t prefetch : {0, 2}) {
      CAPTURE(i);
      CAPTURE(prefetch);
      LoaderOptions options;
      options.batch_size = 2;
      options.prefetch = prefetch;
      for (const DataLoader& loader :
           {DataLoader("noisy", use<Made>({makers[i]}), options),
            DataLoader("noisy", use<MadeInARow>({makers[i]}), options)}) {
        const std::vector<std::string> warnings = warnings_of(loader);
        REQUIRE(warnings.size() == 1);
        CHECK(warnings[0].find("\"noisy\" of Made") != std::string::npos);
        CHECK(warnings[0].find("KeyedRandom") != std::string::npos);
      }
    }
  }
}

TEST_CASE("numbers from a generator of its own, or a key, are no reason for a warning") {
  const std::vector<Maker> makers = {
      [](int64_t index) {
        return torch::randn({2}, at::make_generator<at::CPUGeneratorImpl>(uint64_t(index)));
      },
      [](int64_t index) { return at::full({2}, KeyedRandom(1, uint64_t(index)).normal()); },
      [](int64_t index) { return std::get<0>(at::full({2}, index).sort()); },
  };
  for (const Maker& maker : makers) {
    CHECK(warnings_of(DataLoader("quiet", use<Made>({maker}))).empty());
  }
}

TEST_SUITE_END();
