#include "data/streams/sample_ring.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "data/data_files.h"
#include "data/data_loader.h"
#include "data/grouped_stream.h"

using namespace rondo;
using namespace rondo::test;
using Push = SampleRing::Push;

namespace {

SampleRing::Options holding(int64_t capacity, const std::string& draw = "in_order") {
  SampleRing::Options options;
  options.capacity = capacity;
  options.draw = draw;
  options.timeout = 1e-3;
  return options;
}

Push push(SampleRing& ring, int64_t value, std::optional<double> priority = {}) {
  return ring.push({{"x", torch::tensor({value, value})}}, priority);
}

int64_t value_of(const Sample& sample) {
  return sample["x"][1].item<int64_t>();
}

std::vector<int64_t> draws(SampleRing& ring, int count) {
  std::vector<int64_t> values;
  for (int i = 0; i < count; ++i) {
    values.push_back(value_of(ring.draw()->sample));
  }
  return values;
}

}  // namespace

TEST_SUITE_BEGIN("data/sample_ring");

TEST_CASE("samples come in order, each once") {
  SampleRing ring(holding(4));
  for (int64_t i = 0; i < 3; ++i) {
    CHECK(push(ring, i) == Push::Stored);
  }
  CHECK(draws(ring, 2) == std::vector<int64_t>{0, 1});
  CHECK(push(ring, 3) == Push::Stored);
  CHECK(draws(ring, 2) == std::vector<int64_t>{2, 3});
  CHECK(ring.counts().drawn == 4);
  CHECK(ring.counts().present == 0);
}

TEST_CASE("a full ring overwrites its oldest sample, drops the new one, or waits") {
  auto options = holding(2);
  SampleRing overwriting(options);
  push(overwriting, 0);
  push(overwriting, 1);
  CHECK(push(overwriting, 2) == Push::Overwrote);
  CHECK(overwriting.counts().overwritten == 1);
  CHECK(draws(overwriting, 2) == std::vector<int64_t>{1, 2});

  options.when_full = "drop";
  SampleRing dropping(options);
  push(dropping, 0);
  push(dropping, 1);
  CHECK(push(dropping, 2) == Push::Dropped);
  CHECK(dropping.counts().dropped == 1);
  CHECK(dropping.counts().pushed == 3);
  CHECK(draws(dropping, 2) == std::vector<int64_t>{0, 1});

  options.when_full = "block";
  options.timeout = 60;
  SampleRing blocking(options);
  std::thread producer([&] {
    for (int64_t i = 0; i < 50; ++i) {
      push(blocking, i);
    }
  });
  std::vector<int64_t> all(50);
  for (int64_t i = 0; i < 50; ++i) {
    all[static_cast<size_t>(i)] = i;
  }
  CHECK(draws(blocking, 50) == all);
  producer.join();
  CHECK(blocking.counts().overwritten == 0);
  options.draw = "uniform";
  CHECK_THROWS_AS(SampleRing{options}, UsageError);
}

TEST_CASE("a push keeps nothing of its tensors") {
  SampleRing ring(holding(2));
  const at::Tensor x = torch::ones({2}, torch::kLong);
  ring.push({{"x", x}});
  x.fill_(7);
  const auto drawn = ring.draw();
  push(ring, 3);
  push(ring, 4);
  CHECK(value_of(drawn->sample) == 1);
}

TEST_CASE("a push of another name, shape or type changes nothing and says what differs") {
  SampleRing ring(holding(4));
  push(ring, 1);
  std::string why;
  CHECK(ring.push({{"y", torch::ones({2}, torch::kLong)}}, {}, &why) == Push::Mismatch);
  CHECK(contains(why, "\"y\""));
  CHECK(ring.push({{"x", torch::ones({3}, torch::kLong)}}, {}, &why) == Push::Mismatch);
  CHECK(contains(why, "[3]"));
  CHECK(contains(why, "[2]"));
  CHECK(ring.push({{"x", torch::ones({2})}}, {}, &why) == Push::Mismatch);
  CHECK(contains(why, "Float"));
  CHECK(ring.counts().pushed == 1);
  CHECK_THROWS_AS(ring.push({{"x", at::Tensor()}}), UsageError);
  CHECK_THROWS_AS(push(ring, 1, 0.0), UsageError);
}

TEST_CASE("a draw waits for the minimum, and tells the counts when it does not come") {
  auto options = holding(4);
  options.min_samples = 3;
  SampleRing ring(options);
  push(ring, 0);
  push(ring, 1);
  const std::string message = message_of([&] { ring.draw(); });
  CHECK(contains(message, "3 samples"));
  CHECK(contains(message, "2 are there"));
  push(ring, 2);
  CHECK(draws(ring, 3) == std::vector<int64_t>{0, 1, 2});  // the minimum is for the first
}

TEST_CASE("uniform draws reach every sample, priorities decide how often") {
  SampleRing uniform(holding(4, "uniform"));
  SampleRing::Options with_priorities = holding(3, "priority");
  SampleRing priority(with_priorities);
  for (int64_t i = 0; i < 6; ++i) {
    push(uniform, i);
    push(priority, i, i == 5 ? 8.0 : 1.0);
  }
  std::map<int64_t, int> seen;
  for (const int64_t value : draws(uniform, 400)) {
    ++seen[value];
  }
  CHECK(seen.size() == 4);
  CHECK(seen.begin()->first == 2);
  for (const auto& [value, count] : seen) {
    CHECK(count > 50);
  }
  std::map<int64_t, int> drawn;
  for (const int64_t value : draws(priority, 1000)) {
    ++drawn[value];
  }
  CHECK(drawn.size() == 3);
  CHECK(drawn[5] > 740);  // 800 are expected
  CHECK(drawn[5] < 860);
  CHECK(priority.draw()->chance <= 0.8 + 1e-12);
  priority.set_priority(5, 1e-9);
  priority.set_priority(0, 1e9);  // overwritten long ago
  drawn.clear();
  for (const int64_t value : draws(priority, 100)) {
    ++drawn[value];
  }
  CHECK(drawn[5] == 0);
}

TEST_CASE("what was saved goes on exactly, given the same pushes") {
  for (const char* draw : {"uniform", "in_order", "priority"}) {
    CAPTURE(draw);
    SampleRing ring(holding(5, draw));
    for (int64_t i = 0; i < 8; ++i) {
      push(ring, i);
    }
    draws(ring, 2);
    const StateDict state = ring.save_state();
    SampleRing other(holding(5, draw));
    other.load_state(state);
    for (SampleRing* one : {&ring, &other}) {
      push(*one, 8);
    }
    CHECK(draws(ring, 4) == draws(other, 4));
    CHECK(first_difference(ring.save_state(), other.save_state()) == "");
  }
}

TEST_CASE("a state that does not fit is refused, and one too large is not saved") {
  SampleRing ring(holding(5));
  for (int64_t i = 0; i < 5; ++i) {
    push(ring, i);
  }
  StateDict state = ring.save_state();
  SampleRing smaller(holding(4));
  CHECK_THROWS_AS(smaller.load_state(state), CheckpointError);
  state.set("end", int64_t{4});
  SampleRing equal(holding(5));
  CHECK_THROWS_AS(equal.load_state(state), CheckpointError);
  auto options = holding(5);
  options.max_state_bytes = 5 * 16 - 1;
  SampleRing limited(options);
  for (int64_t i = 0; i < 5; ++i) {
    push(limited, i);
  }
  CHECK_THROWS_AS(limited.save_state(), DataError);
}

TEST_CASE("a closed ring gives what is left in order, and takes nothing more") {
  SampleRing ring(holding(4));
  push(ring, 1);
  ring.close();
  CHECK(push(ring, 2) == Push::Closed);
  CHECK(value_of(ring.draw()->sample) == 1);
  CHECK(!ring.draw());
}

TEST_CASE("a loader reads no further than what it gives out, and its state is exact") {
  const auto ring = std::make_shared<SampleRing>(holding(8));
  LoaderOptions options;
  options.batch_size = 2;
  const DataLoader loader(from_ring(ring), options);
  for (int64_t i = 0; i < 4; ++i) {
    push(*ring, i);
  }
  GroupedStream stream(loader, {2}, 1, {});
  CHECK(value_of({{"x", stream.next().batch["x"][1]}}) == 1);
  const GroupedBatch second = stream.next();
  CHECK(second.position.is_last);
  CHECK(second.position.size == 2);
  CHECK(ring->counts().drawn == 4);
  CHECK(message_of([&] { stream.next(); }) != "");
  CHECK(loader.has_state());
}

TEST_CASE("a ring is the data of a loader, as docs/embedding.md has it") {
  const SampleRing::Options options = holding(8);
  const LoaderOptions batches;
  const at::Tensor x = torch::ones({2});
  const at::Tensor label = torch::tensor(int64_t{1});
  const auto ring = std::make_shared<SampleRing>(options);
  const DataLoader train("train", from_ring(ring), batches);
  ring->push({{"x", x}, {"label", label}});  // from any thread
  CHECK(torch::equal((*train.stream({}, 1)->next())["label"], label.unsqueeze(0)));
}

TEST_CASE("epochs of a ring have the samples that were asked for") {
  auto options = holding(8, "uniform");
  options.epoch_samples = 5;
  const auto ring = std::make_shared<SampleRing>(options);
  push(*ring, 0);
  LoaderOptions batches;
  batches.batch_size = 2;
  const DataLoader loader(from_ring(ring), batches);
  CHECK(loader.size() == 3);
  GroupedStream stream(loader, {2}, 1, {});
  CHECK(!stream.next().ends_epoch);
  CHECK(!stream.next().ends_epoch);
  const GroupedBatch last = stream.next();
  CHECK(last.ends_epoch);
  CHECK(last.position.size == 1);
  CHECK(last.batch.size() == 1);
  CHECK(stream.next().batch.size() == 2);
  CHECK(loader.source().counts().front().second == 1.0);
}

TEST_SUITE_END();
