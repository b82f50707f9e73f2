#include <doctest/doctest.h>
#include <torch/types.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "data/internal/batch_streams.h"

TEST_SUITE_BEGIN("data/prefetch");

using namespace rondo;
using rondo::detail::PassEnd;
using rondo::detail::prefetched;

namespace {

/// Who gave the memory of batches back.
struct Returns {
  std::atomic<int> by_consumer{0};
  std::atomic<int> by_others{0};
  std::thread::id consumer = std::this_thread::get_id();
};

/// Endless batches of one number whose end is seen.
class Watched final : public BatchStream {
 public:
  explicit Watched(std::shared_ptr<Returns> returns) : returns_(std::move(returns)) {}

  std::optional<Batch> next() override {
    auto* const number = new float(static_cast<float>(made_++));
    const auto give_back = [returns = returns_](void* memory) {
      const bool is_consumer = std::this_thread::get_id() == returns->consumer;
      ++(is_consumer ? returns->by_consumer : returns->by_others);
      delete static_cast<float*>(memory);
    };
    return Batch{{"x", torch::from_blob(number, {1}, give_back)}};
  }

  LoaderPosition position() const override { return {0, made_}; }

 private:
  std::shared_ptr<Returns> returns_;
  int64_t made_ = 0;
};

/// Twenty batches of a number, then batches of 1 MiB.
class GrowingBatches final : public BatchStream {
 public:
  explicit GrowingBatches(std::atomic<int>& large) : large_(large) {}

  std::optional<Batch> next() override {
    const bool is_large = made_++ >= 20;
    large_ += is_large ? 1 : 0;
    return Batch{{"x", at::zeros({is_large ? 1 << 18 : 1})}};
  }

  LoaderPosition position() const override { return {0, made_}; }

 private:
  std::atomic<int>& large_;
  int64_t made_ = 0;
};

}  // namespace

TEST_CASE("batches that grow while they are made ahead are not more than large ones may be") {
  std::atomic<int> made{0};
  const auto stream =
      prefetched(std::make_unique<GrowingBatches>(made), std::nullopt, PassEnd::GoOn);
  int taken = 0;
  for (int i = 0; i < 80; ++i) {
    taken += (*stream->next())["x"].numel() > 1 ? 1 : 0;
    std::this_thread::sleep_for(std::chrono::microseconds(500));
    CHECK(made - taken <= 8);
  }
}

TEST_CASE("the memory of batches is given back by the thread that made them") {
  const auto returns = std::make_shared<Returns>();
  const auto stream = prefetched(std::make_unique<Watched>(returns), 2, PassEnd::GoOn);
  for (int i = 0; i < 50; ++i) {
    CHECK((*stream->next())["x"].item<float>() == static_cast<float>(i));
  }
  CHECK(returns->by_consumer == 0);
  CHECK(returns->by_others > 0);
}

TEST_CASE("a batch that the consumer keeps stays, and keeps no other") {
  const auto returns = std::make_shared<Returns>();
  at::Tensor kept;
  {
    const auto stream = prefetched(std::make_unique<Watched>(returns), 2, PassEnd::GoOn);
    kept = (*stream->next())["x"];
    for (int i = 0; i < 50; ++i) {
      stream->next();
    }
    CHECK(returns->by_others >= 40);
  }
  const int before = returns->by_consumer;
  CHECK(kept.item<float>() == 0.0F);
  kept.reset();
  CHECK(returns->by_consumer == before + 1);
}

TEST_CASE("a consumer of any pace, and one that pauses, gets every batch") {
  using std::chrono::microseconds;
  for (const int64_t depth : {1, 2, 8, 64}) {
    const auto returns = std::make_shared<Returns>();
    const auto stream = prefetched(std::make_unique<Watched>(returns), depth, PassEnd::GoOn);
    int expected = 0;
    for (const auto pause : {microseconds(0), microseconds(200), microseconds(20000)}) {
      for (int i = 0; i < 3 * depth; ++i) {
        CHECK((*stream->next())["x"].item<float>() == static_cast<float>(expected++));
        if (i % 16 == 0) {
          std::this_thread::sleep_for(pause);
        }
      }
    }
  }
}

TEST_SUITE_END();
