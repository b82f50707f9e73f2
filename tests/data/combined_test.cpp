#include "data/derived/combined.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <vector>

#include "core/error.h"
#include "core/registry.h"
#include "data/batch_values.h"
#include "data/data_files.h"
#include "data/data_loader.h"
#include "data/register.h"
#include "data/tensor_dataset.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// `count` samples whose x is `first`, `first` + 1, …
Factory<DataSource> numbers(int64_t first, int64_t count) {
  return from_tensors({{"x", torch::arange(first, first + count)}});
}

std::vector<int64_t> all_of(const Dataset& data) {
  std::vector<int64_t> indices(static_cast<size_t>(data.size()));
  for (size_t i = 0; i < indices.size(); ++i) {
    indices[i] = static_cast<int64_t>(i);
  }
  return values(data.get_batch(indices));
}

/// Its samples are the epoch in which they are asked for.
struct Epochs final : Dataset {
  int64_t size() const override { return 3; }

  Sample get(int64_t) const override { return {{"x", torch::tensor(int64_t{-1})}}; }

  Batch get_epoch_batch(const std::vector<int64_t>& indices, int64_t epoch) const override {
    return {{"x", torch::full({static_cast<int64_t>(indices.size())}, epoch, torch::kLong)}};
  }
};

struct Stream final : IterableDataset {
  void start(int64_t) override {}

  std::optional<Sample> next() override { return std::nullopt; }
};

/// Learns a number, its first, and gives what it was told.
struct Learner final : Dataset {
  struct Options {
    int64_t own = 0;
  };

  explicit Learner(const Options& options) : learnt(options.own) {}

  int64_t size() const override { return 1; }

  Sample get(int64_t) const override { return {{"x", torch::tensor(learnt)}}; }

  StateDict fitted() const override { return {{"number", learnt}}; }

  void take_fitted(const StateDict& state) override { learnt = state.at("number").as_int(); }

  int64_t learnt;
};

}  // namespace

TEST_SUITE_BEGIN("data/combined");

TEST_CASE("a subset takes a stretch, one of several, or the samples of a list") {
  Subset::Options options;
  options.of = numbers(0, 10);
  options.from = 2;
  options.count = 5;
  CHECK(all_of(Subset(options)) == std::vector<int64_t>{2, 3, 4, 5, 6});
  options.every = 2;
  CHECK(all_of(Subset(options)) == std::vector<int64_t>{2, 4, 6});
  options.indices = {7, 0, 7};
  const Subset some(options);
  CHECK(all_of(some) == std::vector<int64_t>{7, 0, 7});
  CHECK(some.sample_name(0) == "7");
  CHECK_THROWS_AS(some.get(3), UsageError);
  options.indices = {10};
  CHECK_THROWS_AS(Subset{options}, UsageError);
  CHECK_THROWS_AS(Subset{Subset::Options{}}, UsageError);
}

TEST_CASE("data sets follow each other, and a batch may cross from one into the next") {
  const Concat data({{numbers(0, 2), numbers(10, 3), numbers(20, 1)}});
  CHECK(all_of(data) == std::vector<int64_t>{0, 1, 10, 11, 12, 20});
  CHECK(values(data.get_batch({5, 1, 2, 5, 0})) == std::vector<int64_t>{20, 1, 10, 20, 0});
  CHECK(data.get(4)["x"].item<int64_t>() == 12);
  CHECK(data.numbers("x") == std::vector<double>{0, 1, 10, 11, 12, 20});
}

TEST_CASE("rounds take the share of each part, spread over the round") {
  Interleave::Options options;
  options.parts = {numbers(0, 7), numbers(10, 2)};
  options.shares = {3, 1};
  CHECK(all_of(Interleave(options)) == std::vector<int64_t>{0, 1, 10, 2, 3, 4, 11, 5});
  options.until = "longest";
  CHECK(all_of(Interleave(options)) == std::vector<int64_t>{0, 1, 10, 2, 3, 4, 11, 5, 6, 0, 10, 1});
  options.shares = {3};
  CHECK_THROWS_AS(Interleave{options}, UsageError);
  options.shares = {};
  options.until = "shortest";
  CHECK(all_of(Interleave(options)) == std::vector<int64_t>{0, 10, 1, 11});
}

TEST_CASE("parts are asked for the samples of the epoch") {
  const Concat data({{numbers(0, 1), use<Epochs>()}});
  CHECK(values(data.get_epoch_batch({1, 0, 2}, 5)) == std::vector<int64_t>{5, 0, 5});
}

TEST_CASE("what the first part learnt is that of the others") {
  Concat data({{use<Learner>({4}), use<Learner>({9})}});
  CHECK(all_of(data) == std::vector<int64_t>{4, 4});
  data.take_fitted({{"number", int64_t{6}}});
  CHECK(all_of(data) == std::vector<int64_t>{6, 6});
  CHECK(data.fitted().at("number").as_int() == 6);
}

TEST_CASE("parts that give other tensors, or come one after the other, are refused") {
  const Concat shapes({{numbers(0, 1), from_tensors({{"x", torch::zeros({1, 2})}})}});
  CHECK_THROWS_AS(shapes.get_batch({0, 1}), DataError);
  const std::string stream = message_of([] { Concat({{numbers(0, 1), use<Stream>()}}); });
  CHECK(contains(stream, "part 1"));
  CHECK(contains(stream, "iterable"));
  CHECK_THROWS_AS(Concat{Concat::Options{}}, UsageError);
}

TEST_CASE("a config names the data sets that others are made of") {
  Registry<DataSource> registry("dataset");
  register_builtin_datasets(registry);
  ConfigTable glyphs;
  glyphs.set("size", ConfigValue(int64_t{30}));
  ConfigTable part;
  part.set("Glyphs", ConfigValue(glyphs));
  ConfigTable keys;
  keys.set("parts", ConfigValue(ConfigArray{ConfigValue(part), ConfigValue(part)}));
  std::vector<Fault> faults;
  FaultSink sink("", faults);
  const auto factory = registry.read_named("Concat", {}, keys, sink);
  REQUIRE(faults.empty());
  CHECK(dynamic_cast<const Concat&>(*factory.make()).size() == 60);
  const std::string written = registry.write(factory).to_text();
  CHECK(contains(written, "Glyphs"));
  registry.read_named("Subset", {}, {}, sink);
  CHECK(faults.size() == 1);
}

TEST_SUITE_END();
