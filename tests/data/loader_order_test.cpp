#include <doctest/doctest.h>
#include <torch/types.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "core/error.h"
#include "data/data_files.h"
#include "data/data_loader.h"
#include "data/sorted.h"
#include "data/tensor_dataset.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Sample i is a text of `lengths[i]` tokens, each of them i.
struct Texts final : Dataset {
  struct Options {
    std::vector<int64_t> lengths = {};
  };

  explicit Texts(const Options& options) : o(options) {}

  int64_t size() const override { return static_cast<int64_t>(o.lengths.size()); }

  Sample get(int64_t index) const override {
    return {{"tokens", torch::full({o.lengths[static_cast<size_t>(index)]}, index, torch::kLong)}};
  }

  Options o;
};

struct Endless final : IterableDataset {
  void start(int64_t) override {}

  std::optional<Sample> next() override { return Sample{{"x", torch::zeros({})}}; }
};

using Batches = std::vector<std::vector<int64_t>>;

/// The samples of each batch, and the lengths that were seen.
Batches texts_of(const DataLoader& loader,
                 LoaderPosition from,
                 uint64_t seed,
                 std::multiset<std::pair<int64_t, int64_t>>* shapes = nullptr) {
  Batches batches;
  const auto stream = loader.stream(from, seed);
  while (auto batch = stream->next()) {
    const at::Tensor& tokens = (*batch)["tokens"];
    if (shapes != nullptr) {
      shapes->insert({tokens.size(0), tokens.size(1)});
    }
    const at::Tensor first = tokens.select(1, 0).contiguous();
    batches.emplace_back(first.data_ptr<int64_t>(), first.data_ptr<int64_t>() + first.numel());
  }
  return batches;
}

std::vector<int64_t> flat(const Batches& batches) {
  std::vector<int64_t> all;
  for (const auto& batch : batches) {
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

std::vector<int64_t> up_to(int64_t end) {
  std::vector<int64_t> numbers(static_cast<size_t>(end));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

LoaderOptions in_buckets() {
  LoaderOptions options;
  options.pad_to = {4, 8, 16};
  options.pad = {"tokens"};
  options.buckets = true;
  options.batch_size = 3;
  return options;
}

std::vector<int64_t> lengths_of(int64_t count) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < count; ++i) {
    lengths.push_back(1 + i * 7 % 16);
  }
  return lengths;
}

std::map<int64_t, int64_t> labels_of(const DataLoader& loader, LoaderPosition from = {}) {
  std::map<int64_t, int64_t> counts;
  const auto stream = loader.stream(from, 3);
  while (auto batch = stream->next()) {
    for (int64_t i = 0; i < batch->size(); ++i) {
      ++counts[(*batch)["label"][i].item<int64_t>()];
    }
  }
  return counts;
}

}  // namespace

TEST_SUITE_BEGIN("data/loader_order");

TEST_CASE("batches of buckets have few shapes, and each sample comes once") {
  LoaderOptions options = in_buckets();
  for (const bool shuffle : {false, true}) {
    CAPTURE(shuffle);
    options.shuffle = shuffle;
    const DataLoader loader(use<Texts>({lengths_of(40)}), options);
    std::multiset<std::pair<int64_t, int64_t>> shapes;
    const Batches batches = texts_of(loader, {}, 1, &shapes);
    CHECK(sorted(flat(batches)) == up_to(40));
    CHECK(loader.size() == static_cast<int64_t>(batches.size()));
    const std::set<std::pair<int64_t, int64_t>> kinds(shapes.begin(), shapes.end());
    int64_t short_ones = 0;
    for (const auto& [rows, length] : kinds) {
      CHECK((length == 4 || length == 8 || length == 16));
      short_ones += rows < 3 ? 1 : 0;
    }
    CHECK(short_ones <= 3);
    CHECK(kinds.size() <= 6);
  }
}

TEST_CASE("buckets are other ones in each epoch, when shuffled, and the same ones in each run") {
  LoaderOptions options = in_buckets();
  options.shuffle = true;
  const DataLoader loader(use<Texts>({lengths_of(40)}), options);
  CHECK(texts_of(loader, {}, 1) == texts_of(loader, {}, 1));
  CHECK(texts_of(loader, {}, 1) != texts_of(loader, {1, 0}, 1));
  CHECK(texts_of(loader, {}, 1).size() == texts_of(loader, {1, 0}, 1).size());
}

TEST_CASE("a pass of buckets goes on behind any batch, and its size is known there") {
  LoaderOptions options = in_buckets();
  options.shuffle = true;
  for (const bool drop_last : {false, true}) {
    options.drop_last = drop_last;
    const DataLoader loader(use<Texts>({lengths_of(40)}), options);
    const Batches all = texts_of(loader, {2, 0}, 7);
    int64_t consumed = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      const Batches rest(all.begin() + static_cast<std::ptrdiff_t>(i), all.end());
      CHECK(texts_of(loader, {2, consumed}, 7) == rest);
      CHECK(loader.size({2, consumed}, 7) == static_cast<int64_t>(rest.size()));
      CHECK(loader.number_of({2, consumed}, 7) == rest.front().front());
      consumed += static_cast<int64_t>(all[i].size());
    }
  }
}

TEST_CASE("max_tokens sizes the batches of each length") {
  LoaderOptions options = in_buckets();
  options.batch_size = 1;
  options.max_tokens = 33;
  const DataLoader loader(use<Texts>({lengths_of(64)}), options);
  std::multiset<std::pair<int64_t, int64_t>> shapes;
  CHECK(sorted(flat(texts_of(loader, {}, 1, &shapes))) == up_to(64));
  CHECK(shapes.count({8, 4}) >= 1);
  CHECK(shapes.count({4, 8}) >= 1);
  CHECK(shapes.count({2, 16}) >= 1);
  for (const auto& [rows, length] : shapes) {
    CHECK(rows * length <= 33);
  }
  CHECK(flat(texts_of(loader.in_order(), {}, 1)) == up_to(64));
}

TEST_CASE("a class is drawn as often as another, and by weight in proportion to it") {
  std::vector<int64_t> labels(900, 0);
  std::fill(labels.begin() + 800, labels.end(), 1);
  const at::Tensor label = torch::tensor(labels);
  const at::Tensor weight = torch::where(label == 1, torch::tensor(0.0), torch::tensor(2.0));
  LoaderOptions options;
  options.batch_size = 50;
  options.balance_by = "label";
  const DataLoader balanced(from_tensors({{"label", label}, {"weight", weight}}), options);
  auto counts = labels_of(balanced);
  CHECK(counts[0] + counts[1] == 900);
  CHECK(std::abs(counts[0] - counts[1]) < 180);  // six standard deviations
  CHECK(labels_of(balanced, {0, 450}) != counts);
  options.balance_by = "";
  options.draw_by = "weight";
  options.draws = 200;
  const DataLoader weighted(from_tensors({{"label", label}, {"weight", weight}}), options);
  counts = labels_of(weighted);
  CHECK(counts[0] == 200);
  CHECK(weighted.size() == 4);
  CHECK(weighted.samples() == 200);
}

TEST_CASE("draws go on where a pass was left") {
  const at::Tensor x = torch::arange(50);
  LoaderOptions options;
  options.draw_by = "x";
  options.batch_size = 8;
  const DataLoader loader(from_tensors({{"x", x}}), options);
  const auto all = loader.stream({4, 0}, 9);
  all->next();
  all->next();
  const auto rest = loader.stream({4, 16}, 9);
  CHECK(torch::equal((*all->next())["x"], (*rest->next())["x"]));
  CHECK(loader.number_of({4, 24}, 9) == (*rest->next())["x"][0].item<int64_t>());
}

TEST_CASE("weights that are no weights are named") {
  LoaderOptions options;
  options.draw_by = "x";
  const DataLoader negative(from_tensors({{"x", torch::tensor({1.0, -2.0})}}), options);
  const std::string message = message_of([&] { negative.stream({}, 1); });
  CHECK(contains(message, "sample 1"));
  CHECK(contains(message, "-2"));
  const DataLoader rows(from_tensors({{"x", torch::zeros({2, 3})}}), options);
  CHECK_THROWS_AS(rows.stream({}, 1), DataError);
  const DataLoader none(from_tensors({{"x", torch::zeros({2})}}), options);
  CHECK_THROWS_AS(none.stream({}, 1), DataError);
}

TEST_CASE("the first samples of the data alone are a loader's data") {
  LoaderOptions options;
  options.first_samples = 5;
  options.batch_size = 2;
  const DataLoader loader(from_tensors({{"x", torch::arange(50)}}), options);
  CHECK(loader.samples() == 5);
  CHECK(loader.size() == 3);
  CHECK(loader.first(3).samples() == 3);
}

TEST_CASE("options that do not go together are refused") {
  const Factory<DataSource> data = use<Texts>({{1, 2}});
  const auto refuses = [&](const LoaderOptions& options) {
    CHECK_THROWS_AS(DataLoader(data, options), UsageError);
  };
  LoaderOptions options = in_buckets();
  options.pad_to = {};
  options.pad = {};
  refuses(options);
  options = in_buckets();
  options.max_tokens = 100;
  refuses(options);  // batch_size too
  options.batch_size = 1;
  options.max_tokens = 15;
  refuses(options);  // not one of length 16
  options = {};
  options.draw_by = "x";
  options.balance_by = "y";
  refuses(options);
  options.balance_by = "";
  options.shuffle = true;
  refuses(options);
  options = {};
  options.draws = 3;
  refuses(options);
  options = {};
  options.workers = 2;
  options.prefetch = 0;
  refuses(options);
  options.prefetch.reset();
  CHECK_THROWS_AS(DataLoader(use<Endless>(), options).stream({}, 1), DataError);
}

TEST_CASE("a loader that a run waits for is named, with the share and what helps") {
  const DataLoader loader("train", use<Texts>({{1, 2}}), {});
  CHECK(!slow_loader_advice(loader, 0.5, 100.0));
  CHECK(!slow_loader_advice(loader, 1.0, 2.0));
  const auto advice = slow_loader_advice(loader, 34.0, 100.0);
  REQUIRE(advice);
  CHECK(contains(*advice, "\"train\""));
  CHECK(contains(*advice, "34 %"));
  CHECK(contains(*advice, "workers = 2"));
}

TEST_SUITE_END();
