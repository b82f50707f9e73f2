#include "data/data_loader.h"

#include <doctest/doctest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "core/error.h"
#include "data/batch_values.h"
#include "data/data_files.h"
#include "data/tensor_dataset.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// What a Counter is asked for, seen from outside.
struct Calls {
  std::mutex mutex;
  std::condition_variable changed;
  int64_t got = 0;
  int built = 0;

  void wait_for(int64_t count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return got >= count; });
  }
};

/// Samples that are their own index.
struct Counter final : Dataset {
  struct Options {
    int64_t size = 10;
    int64_t fails_at = -1;
    std::shared_ptr<Calls> calls = nullptr;
  };

  explicit Counter(const Options& options) : o(options) {
    if (o.calls) {
      const std::lock_guard lock(o.calls->mutex);
      ++o.calls->built;
    }
  }

  int64_t size() const override { return o.size; }

  Sample get(int64_t index) const override {
    if (index == o.fails_at) {
      throw std::runtime_error("disk on fire");
    }
    if (o.calls) {
      const std::lock_guard lock(o.calls->mutex);
      ++o.calls->got;
      o.calls->changed.notify_all();
    }
    return {{"x", at::full({}, index, at::kLong)}};
  }

  Options o;
};

/// The numbers of epoch e are 100 e, 100 e + 1, …
struct Numbers final : IterableDataset {
  struct Options {
    int64_t count = 10;
    int64_t fails_at = -1;
    bool is_sized = false;
  };

  explicit Numbers(const Options& options) : o(options) {}

  void start(int64_t epoch) override {
    number = 0;
    base = 100 * epoch;
  }

  std::optional<Sample> next() override {
    if (number == o.fails_at) {
      throw std::runtime_error("line dropped");
    }
    if (number == o.count) {
      return std::nullopt;
    }
    return Sample{{"x", at::full({}, base + number++, at::kLong)}};
  }

  std::optional<int64_t> size() const override {
    return o.is_sized ? std::optional(o.count) : std::nullopt;
  }

  Options o;
  int64_t number = 0;
  int64_t base = 0;
};

struct NoSource final : DataSource {};

struct Broken final : Dataset {
  Broken() { throw std::runtime_error("no such file"); }

  int64_t size() const override { return 0; }

  Sample get(int64_t) const override { return {}; }
};

LoaderOptions batches_of(int64_t batch_size, int64_t prefetch) {
  LoaderOptions options;
  options.batch_size = batch_size;
  options.prefetch = prefetch;
  return options;
}

std::vector<std::vector<int64_t>> rest_of(BatchStream& stream) {
  std::vector<std::vector<int64_t>> batches;
  while (auto batch = stream.next()) {
    batches.push_back(values(*batch));
  }
  return batches;
}

std::vector<std::vector<int64_t>> pass(const DataLoader& loader,
                                       LoaderPosition from = {},
                                       uint64_t seed = 1) {
  return rest_of(*loader.stream(from, seed));
}

}  // namespace

TEST_SUITE_BEGIN("data/data_loader");

using Batches = std::vector<std::vector<int64_t>>;

TEST_CASE("batches come in order, with a short last one or without it") {
  for (const int64_t prefetch : {0, 1, 3}) {
    LoaderOptions options = batches_of(4, prefetch);
    const DataLoader loader(use<Counter>({10}), options);
    CHECK(pass(loader) == Batches{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}});
    CHECK(loader.size() == 3);
    options.drop_last = true;
    const DataLoader whole(use<Counter>({10}), options);
    CHECK(pass(whole) == Batches{{0, 1, 2, 3}, {4, 5, 6, 7}});
    CHECK(whole.size() == 2);
  }
}

TEST_CASE("an empty data set has no batch; one smaller than a batch has a short one or none") {
  for (const int64_t prefetch : {0, 2}) {
    LoaderOptions options = batches_of(4, prefetch);
    CHECK(pass(DataLoader(use<Counter>({0}), options)).empty());
    CHECK(DataLoader(use<Counter>({0}), options).size() == 0);
    CHECK(pass(DataLoader(use<Counter>({3}), options)) == Batches{{0, 1, 2}});
    options.drop_last = true;
    CHECK(pass(DataLoader(use<Counter>({3}), options)).empty());
    CHECK(DataLoader(use<Counter>({3}), options).size() == 0);
    CHECK(pass(DataLoader(use<Numbers>({0}), options)).empty());
  }
}

TEST_CASE("the first samples of a loader are one of their own, over the same data set") {
  auto calls = std::make_shared<Calls>();
  LoaderOptions options = batches_of(4, 0);
  std::optional<DataLoader> loader(DataLoader("train", use<Counter>({10, -1, calls}), options));
  const DataLoader part = loader->first(6);
  CHECK(&part.source() == &loader->source());
  CHECK_FALSE(part.is_same(*loader));
  CHECK(part.label() == "train");
  CHECK(pass(loader->first(99)) == pass(*loader));
  CHECK_THROWS_AS(loader->first(0), UsageError);
  loader.reset();
  CHECK(part.size() == 2);
  CHECK(pass(part) == Batches{{0, 1, 2, 3}, {4, 5}});
  CHECK(calls->built == 1);
  options.shuffle = true;
  const auto shuffled = pass(DataLoader(use<Counter>({10}), options).first(6));
  std::set<int64_t> seen;
  for (const std::vector<int64_t>& batch : shuffled) {
    seen.insert(batch.begin(), batch.end());
  }
  CHECK(seen == std::set<int64_t>{0, 1, 2, 3, 4, 5});
  CHECK_THROWS_AS(DataLoader(use<Numbers>({9}), batches_of(4, 0)).first(6), UsageError);
}

TEST_CASE("a loader in order has every sample in the order of the data, and is the same loader") {
  auto calls = std::make_shared<Calls>();
  LoaderOptions options = batches_of(4, 0);
  options.shuffle = true;
  options.drop_last = true;
  const DataLoader loader("train", use<Counter>({10, -1, calls}), options);
  const DataLoader ordered = loader.in_order();
  CHECK(pass(ordered) == Batches{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}});
  CHECK(ordered.size() == 3);
  CHECK(ordered.last_size() == 2);
  CHECK(ordered.is_same(loader));
  CHECK(ordered.label() == "train");
  CHECK(loader.options().shuffle);
  CHECK(loader.options().drop_last);
  CHECK(loader.size() == 2);
  CHECK(calls->built == 1);
  options.shuffle = false;
  const DataLoader numbers(use<Numbers>({9}), options);
  CHECK(pass(numbers.in_order()).size() == 3);
  CHECK(pass(numbers).size() == 2);
}

TEST_CASE("labels of loaders that belong together are distinct; none is no label") {
  const auto labelled = [](const char* label) { return DataLoader(label, use<Counter>()); };
  CHECK_NOTHROW(require_distinct_labels({labelled("a"), labelled("b")}));
  CHECK_NOTHROW(require_distinct_labels({labelled(""), labelled("")}));
  CHECK_THROWS_AS(require_distinct_labels({labelled("a"), labelled("b"), labelled("a")}),
                  UsageError);
}

TEST_CASE("after its end a stream stays at its end") {
  for (const int64_t prefetch : {0, 2}) {
    const DataLoader indexed(use<Counter>({2}), batches_of(4, prefetch));
    const DataLoader sequential(use<Numbers>({2}), batches_of(4, prefetch));
    for (const DataLoader& loader : {indexed, sequential}) {
      const auto stream = loader.stream({}, 1);
      CHECK(stream->next());
      CHECK(!stream->next());
      CHECK(!stream->next());
      CHECK(stream->position().sample == 2);
    }
  }
}

TEST_CASE("shuffling visits everything once, in an order of seed and epoch alone") {
  LoaderOptions options = batches_of(8, 2);
  options.shuffle = true;
  const DataLoader loader(use<Counter>({50}), options);
  const auto flat = [](const Batches& batches) {
    std::vector<int64_t> all;
    for (const auto& batch : batches) {
      all.insert(all.end(), batch.begin(), batch.end());
    }
    return all;
  };
  const auto first = flat(pass(loader, {0, 0}, 7));
  CHECK(std::set<int64_t>(first.begin(), first.end()).size() == 50);
  CHECK(first == flat(pass(loader, {0, 0}, 7)));
  CHECK(first != flat(pass(loader, {1, 0}, 7)));
  CHECK(first != flat(pass(loader, {0, 0}, 8)));
  SUBCASE("the loader's own seed goes before the run's") {
    options.shuffle_seed = 7;
    const DataLoader seeded(use<Counter>({50}), options);
    CHECK(flat(pass(seeded, {0, 0}, 8)) == first);
  }
  SUBCASE("the global generator is not touched") {
    torch::manual_seed(3);
    const at::Tensor expected = at::rand({4});
    torch::manual_seed(3);
    pass(loader);
    CHECK(at::equal(at::rand({4}), expected));
  }
}

TEST_CASE("an iterable data set begins each epoch anew and is read over to the position") {
  for (const int64_t prefetch : {0, 2}) {
    const DataLoader loader(use<Numbers>({10}), batches_of(4, prefetch));
    CHECK(pass(loader) == Batches{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}});
    CHECK(pass(loader, {2, 4}) == Batches{{204, 205, 206, 207}, {208, 209}});
    CHECK(pass(loader, {2, 10}).empty());
    CHECK(!loader.size());
    CHECK(DataLoader(use<Numbers>({10, -1, true}), batches_of(4, prefetch)).size() == 3);
  }
}

TEST_CASE("epochs are passes one after the other, from a position on, each with its own order") {
  for (const int64_t prefetch : {0, 1, 2, 20}) {
    LoaderOptions options = batches_of(4, prefetch);
    const DataLoader sequential(use<Numbers>({6}), options);
    options.shuffle = true;
    const DataLoader indexed(use<Counter>({6}), options);
    for (const DataLoader& loader : {indexed, sequential}) {
      const auto stream = loader.epochs({3, 4}, 7);
      CHECK(rest_of(*stream) == pass(loader, {3, 4}, 7));
      for (int64_t epoch = 4; epoch < 40; ++epoch) {
        CHECK(rest_of(*stream) == pass(loader, {epoch, 0}, 7));
        CHECK(stream->position().epoch == epoch);
        CHECK(stream->position().sample == 6);
      }
    }
  }
}

TEST_CASE("epochs of nothing end again and again") {
  for (const int64_t prefetch : {0, 2}) {
    const DataLoader loader(use<Counter>({0}), batches_of(4, prefetch));
    const auto stream = loader.epochs({}, 1);
    for (int64_t epoch = 0; epoch < 5; ++epoch) {
      CHECK(!stream->next());
      CHECK(stream->position().epoch == epoch);
    }
  }
}

TEST_CASE("the first batches of the next epoch are made before this one is consumed") {
  const auto calls = std::make_shared<Calls>();
  const DataLoader loader(use<Counter>({8, -1, calls}), batches_of(4, 4));
  const auto stream = loader.epochs({}, 1);
  calls->wait_for(12);  // four of the queue: two batches, an end, and a batch of the next epoch
  CHECK(stream->position().sample == 0);
}

TEST_CASE("another pass over an iterable data set may come between two epochs") {
  for (const int64_t prefetch : {0, 1, 8}) {
    const DataLoader loader(use<Numbers>({6}), batches_of(4, prefetch));
    const auto stream = loader.epochs({}, 1);
    for (int64_t epoch = 0; epoch < 20; ++epoch) {
      CHECK(rest_of(*stream).size() == 2);
      CHECK(pass(loader) == Batches{{0, 1, 2, 3}, {4, 5}});
    }
  }
}

TEST_CASE("position is what was consumed, not what was made ahead") {
  const auto calls = std::make_shared<Calls>();
  const DataLoader loader(use<Counter>({100, -1, calls}), batches_of(4, 3));
  const auto stream = loader.stream({5, 8}, 1);
  calls->wait_for(12);
  CHECK(stream->position().sample == 8);
  CHECK(values(*stream->next()) == std::vector<int64_t>{8, 9, 10, 11});
  CHECK(stream->position().epoch == 5);
  CHECK(stream->position().sample == 12);
}

TEST_CASE("never more batches are made ahead than prefetch says") {
  const auto calls = std::make_shared<Calls>();
  const DataLoader loader(use<Counter>({40, -1, calls}), batches_of(4, 2));
  const auto stream = loader.stream({}, 1);
  for (int64_t taken = 0; taken < 8; ++taken) {
    calls->wait_for(4 * (taken + 2));
    for (int turn = 0; turn < 1000; ++turn) {  // gives the thread its chance to go too far
      std::this_thread::yield();
    }
    {
      const std::lock_guard lock(calls->mutex);
      CHECK(calls->got == 4 * (taken + 2));
    }
    stream->next();
  }
}

TEST_CASE("without prefetch, more batches are made ahead when they are small") {
  for (const int64_t batch_size : {4, 40000}) {
    const auto calls = std::make_shared<Calls>();
    LoaderOptions options;
    options.batch_size = batch_size;
    const DataLoader loader(use<Counter>({batch_size * 100, -1, calls}), options);
    const auto stream = loader.stream({}, 1);
    const int64_t ahead = batch_size == 4 ? 64 : 8;
    calls->wait_for(batch_size * ahead);
    for (int turn = 0; turn < 1000; ++turn) {  // gives the thread its chance to go too far
      std::this_thread::yield();
    }
    const std::lock_guard lock(calls->mutex);
    CHECK(calls->got == batch_size * ahead);
  }
}

TEST_CASE("a stream may be destroyed while its queue is full, and before its first batch") {
  const auto calls = std::make_shared<Calls>();
  const DataLoader loader(use<Counter>({1000000, -1, calls}), batches_of(4, 2));
  auto stream = loader.stream({}, 1);
  calls->wait_for(8);
  stream.reset();
  for (int i = 0; i < 50; ++i) {
    loader.stream({}, 1);
  }
}

TEST_CASE("a stream outlives its loader") {
  std::unique_ptr<BatchStream> stream;
  {
    const DataLoader loader(use<Numbers>({6}), batches_of(3, 2));
    stream = loader.stream({}, 1);
  }
  CHECK(rest_of(*stream) == Batches{{0, 1, 2}, {3, 4, 5}});
}

TEST_CASE("an error of the data set arrives after the batches before it, with index and loader") {
  for (const int64_t prefetch : {0, 2}) {
    const DataLoader indexed("train", use<Counter>({20, 9}), batches_of(4, prefetch));
    const DataLoader sequential("train", use<Numbers>({20, 9}), batches_of(4, prefetch));
    for (const DataLoader& loader : {indexed, sequential}) {
      const auto stream = loader.stream({3, 0}, 1);
      CHECK(stream->next());
      CHECK(stream->next());
      CHECK(stream->position().sample == 8);
      const std::string message = message_of([&] { stream->next(); });
      for (const char* fact : {"\"train\"", "epoch 3", "sample 9"}) {
        CAPTURE(message);
        CHECK(contains(message, fact));
      }
      CHECK_THROWS_AS(stream->next(), DataError);
    }
  }
}

TEST_CASE("the cause of an error on the loader's thread is kept") {
  const DataLoader loader(use<Counter>({20, 0}), batches_of(4, 2));
  const auto stream = loader.stream({}, 1);
  CHECK(contains(message_of([&] { stream->next(); }), "disk on fire"));
}

TEST_CASE("copies are one loader and build its data set once, when it is first needed") {
  const auto calls = std::make_shared<Calls>();
  const DataLoader loader("a", use<Counter>({10, -1, calls}), batches_of(4, 0));
  const DataLoader copy = loader;
  CHECK(calls->built == 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([copy] { copy.size(); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  pass(loader);
  CHECK(calls->built == 1);
  CHECK(&loader.source() == &copy.source());
  CHECK(copy.is_same(loader));
  CHECK(!DataLoader("a", use<Counter>({10}), batches_of(4, 0)).is_same(loader));
}

TEST_CASE("several passes over one data set run side by side") {
  const DataLoader loader(use<Counter>({6}), batches_of(2, 1));
  const auto a = loader.stream({}, 1);
  const auto b = loader.stream({}, 1);
  CHECK(values(*a->next()) == values(*b->next()));
  CHECK(values(*a->next()) == std::vector<int64_t>{2, 3});
  CHECK(values(*b->next()) == std::vector<int64_t>{2, 3});
}

TEST_CASE("a new pass over an iterable data set ends the one before it") {
  for (const int64_t prefetch : {0, 1}) {
    const DataLoader loader("s", use<Numbers>({100}), batches_of(2, prefetch));
    const auto old = loader.stream({}, 1);
    CHECK(old->next());
    const auto young = loader.stream({1, 0}, 1);
    CHECK(values(*young->next()) == std::vector<int64_t>{100, 101});
    CHECK_THROWS_AS(rest_of(*old), UsageError);
    CHECK(values(*young->next()) == std::vector<int64_t>{102, 103});
  }
}

TEST_CASE("a data set that cannot be built names the loader and the cause, at each use") {
  const DataLoader loader("val", use<Broken>(), {});
  for (int i = 0; i < 2; ++i) {
    CHECK_THROWS_AS(loader.size(), DataError);
    const std::string message = message_of([&] { loader.stream({}, 1); });
    for (const char* fact : {"\"val\"", "Broken", "no such file"}) {
      CHECK(contains(message, fact));
    }
  }
  CHECK_THROWS_AS(DataLoader(use<NoSource>(), {}).size(), DataError);
}

TEST_CASE("an iterable data set cannot be shuffled") {
  LoaderOptions options;
  options.shuffle = true;
  const DataLoader loader("s", use<Numbers>({100}), options);
  CHECK(contains(message_of([&] { loader.stream({}, 1); }), "shuffle"));
}

TEST_CASE("options and positions out of range are refused with their value") {
  CHECK(contains(message_of([] { DataLoader("t", use<Counter>(), batches_of(0, 0)); }), "got 0"));
  CHECK_THROWS_AS(DataLoader("t", use<Counter>(), batches_of(1, -1)), UsageError);
  CHECK_THROWS_AS(DataLoader("t", Factory<DataSource>(), {}), UsageError);
  CHECK_THROWS_AS(DataLoader(use<Counter>(), {}).stream({-1, 0}, 1), UsageError);
  CHECK_THROWS_AS(DataLoader(use<Counter>(), {}).stream({0, -1}, 1), UsageError);
}

TEST_CASE("a position beyond the data is an error that names both") {
  for (const int64_t prefetch : {0, 1}) {
    for (const auto& source : {use<Counter>({10}), use<Numbers>({10})}) {
      const DataLoader loader("t", source, batches_of(2, prefetch));
      const std::string message = message_of([&] { loader.stream({1, 12}, 1)->next(); });
      for (const char* fact : {"\"t\"", "12", "10"}) {
        CHECK(contains(message, fact));
      }
    }
  }
}

TEST_CASE("the keys of a loader read and check its options") {
  ConfigTable table;
  table.set("batch_size", ConfigValue(int64_t{64}));
  table.set("shuffle", ConfigValue(true));
  table.set("shuffle_seed", ConfigValue(int64_t{9}));
  LoaderOptions options;
  std::vector<Fault> faults;
  FaultSink sink("loader", faults);
  loader_keys().read(table, {}, &options, sink);
  CHECK(faults.empty());
  CHECK(options.batch_size == 64);
  CHECK(options.shuffle);
  CHECK(options.shuffle_seed == uint64_t{9});
  table.set("batch_size", ConfigValue(int64_t{0}));
  loader_keys().read(table, {}, &options, sink);
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].path == "loader.batch_size");
}

TEST_CASE("facts, what was learnt and notes come from the data set, notes once for all copies") {
  class Learnt final : public Dataset {
   public:
    int64_t size() const override { return size_; }

    Sample get(int64_t) const override { return {}; }

    DatasetFacts facts() const override {
      DatasetFacts facts;
      facts.classes = 3;
      return facts;
    }

    StateDict fitted() const override { return {{"size", size_}}; }

    void take_fitted(const StateDict& fitted) override { size_ = fitted.at("size").as_int(); }

    DatasetNotes notes() const override { return {"read", {"with care"}}; }

   private:
    int64_t size_ = 4;
  };

  const DataLoader loader(use<Learnt>());
  const DataLoader copy = loader;  // NOLINT: the copy is what is tested
  CHECK(!loader.is_built());
  CHECK(loader.facts().classes == 3);
  CHECK(copy.is_built());
  CHECK(copy.take_notes().warnings.size() == 1);
  CHECK(loader.take_notes().summary.empty());
  loader.take_fitted({{"size", 7}});
  CHECK(copy.fitted().at("size").as_int() == 7);
  CHECK(copy.size() == 7);
  CHECK_THROWS_AS(loader.take_fitted({}), DataError);
}

TEST_SUITE_END();
