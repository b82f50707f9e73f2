#include "metrics/sums_metric.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <doctest/doctest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <memory>
#include <string>
#include <vector>

#include "core/config_value.h"
#include "core/registry.h"
#include "metrics/register.h"

using namespace rondo;

namespace {

/// What a model says of some samples, and the samples.
struct Evaluated {
  Outputs outputs;
  Batch batch;
};

constexpr int64_t kSamples = 48;

/// Targets whose mean is large against their spread.
Evaluated ranked_samples(int64_t from, int64_t to) {
  torch::manual_seed(3);
  const at::Tensor logits = torch::randn({kSamples, 2}, at::kDouble).mul(0.01).add(1000.0);
  const at::Tensor labels = torch::randint(2, {kSamples}, at::kLong);
  const at::Tensor target = torch::arange(kSamples * 2, at::kDouble).view({kSamples, 2});
  const auto part = [&](const at::Tensor& all) { return all.slice(0, from, to); };
  const at::Tensor loss = at::cross_entropy_loss(part(logits), part(labels));
  return {{{"logits", part(logits)}, {"loss", loss}},
          {{"label", part(labels)},
           {"targets", part(labels)},
           {"target", part(target).mul(1e-3).add(1000.0)}}};
}

void add_samples(Metric& metric, int64_t from, int64_t to) {
  const Evaluated evaluated = ranked_samples(from, to);
  metric.update(evaluated.outputs, evaluated.batch);
}

}  // namespace

TEST_SUITE_BEGIN("metrics/sums_metric");

TEST_CASE("the sums of ranks that share the samples add up to those of one that has them all") {
  Registry<Metric> registry("metric");
  register_builtin_metrics(registry);
  for (const auto& entry : registry.entries()) {
    CAPTURE(entry.name);
    std::vector<Fault> faults;
    FaultSink sink("", faults);
    const Factory<Metric> factory = registry.read_named(entry.name, {}, {}, sink);
    REQUIRE(faults.empty());
    std::vector<std::unique_ptr<Metric>> ranks;
    for (int64_t rank = 0; rank < 2; ++rank) {
      ranks.push_back(factory.make());
      for (const int64_t batch : {0, 1, 2}) {
        add_samples(*ranks.back(), 16 * batch + 8 * rank, 16 * batch + 8 * rank + 8);
      }
    }
    const std::unique_ptr<Metric> alone = factory.make();
    for (const int64_t batch : {0, 1, 2}) {
      add_samples(*alone, 16 * batch, 16 * batch + 16);
    }
    const auto own = ranks[0]->state();
    const auto others = ranks[1]->state();
    for (size_t i = 0; i < own.size(); ++i) {
      own[i].second.add_(others[i].second);
    }
    const auto expected = alone->values();
    const auto values = ranks[0]->values();
    REQUIRE(values.size() == expected.size());
    for (size_t i = 0; i < values.size(); ++i) {
      CHECK(values[i].first == expected[i].first);
      CHECK(values[i].second == doctest::Approx(expected[i].second).epsilon(1e-9));
    }
  }
}

TEST_SUITE_END();
