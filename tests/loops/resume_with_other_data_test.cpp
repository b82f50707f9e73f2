#include <doctest/doctest.h>
#include <fmt/format.h>
#include <torch/types.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "callbacks/core/run_plan.h"
#include "core/error.h"
#include "core/random.h"
#include "loops/fit_run.h"
#include "support/campaign.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Samples for `tiny_options` that come one after the other.
struct Streamed final : IterableDataset {
  struct Options {
    int64_t size = 0;
  };

  explicit Streamed(const Options& options) : size_of_pass(options.size) {}

  void start(int64_t) override { done = 0; }

  std::optional<Sample> next() override {
    if (done == size_of_pass) {
      return std::nullopt;
    }
    ++done;
    return Sample{{"x", at::full({4}, static_cast<double>(done))},
                  {"label", at::full({}, done % 3, at::kLong)}};
  }

  int64_t size_of_pass;
  int64_t done = 0;
};

/// A data set and how it is batched.
struct Data {
  int64_t size = 100;
  int64_t batch = 10;
  int64_t group = 1;  // batches of an update
  bool drops_last = false;
  bool shuffles = false;
  bool streams = false;

  DataLoader loader() const {
    LoaderOptions options;
    options.batch_size = batch;
    options.drop_last = drops_last;
    options.shuffle = shuffles && !streams;
    return streams ? DataLoader("train", use<Streamed>({size}), options)
                   : tiny_loader("train", size, options);
  }

  std::string text() const {
    return fmt::format("{} {} samples, batches of {}, groups of {}{}",
                       size,
                       streams ? "streamed" : "indexed",
                       batch,
                       group,
                       drops_last ? ", drop_last" : "");
  }
};

/// What a batch left in the counters.
struct Seen {
  int64_t epoch = 0;
  int64_t sample_in_epoch = 0;
  int64_t sample = 0;
  int64_t update = 0;

  bool operator==(const Seen& o) const {
    return epoch == o.epoch && sample_in_epoch == o.sample_in_epoch && sample == o.sample &&
           update == o.update;
  }
};

std::ostream& operator<<(std::ostream& out, const Seen& seen) {
  return out << fmt::format("epoch {} sample {} of {}, update {}",
                            seen.epoch,
                            seen.sample_in_epoch,
                            seen.sample,
                            seen.update);
}

constexpr int64_t kEpochs = 3;

/// What every batch from `at` on should leave in the counters, up to update `until`.
std::vector<Seen> expected(const Data& data, Seen at, std::optional<int64_t> until = {}) {
  std::vector<Seen> all;
  while (at.epoch < kEpochs) {
    const int64_t left = std::max<int64_t>(data.size - at.sample_in_epoch, 0);
    const int64_t batches = left / data.batch + (!data.drops_last && left % data.batch > 0 ? 1 : 0);
    for (int64_t i = 1; i <= batches; ++i) {
      const int64_t samples = std::min(data.size - at.sample_in_epoch, data.batch);
      at.sample += samples;
      at.sample_in_epoch += samples;
      at.update += i % data.group == 0 || i == batches ? 1 : 0;
      if (i == batches) {
        ++at.epoch;
        at.sample_in_epoch = 0;
      }
      all.push_back(at);
      if (until == at.update) {
        return all;
      }
    }
    if (batches == 0) {
      ++at.epoch;
      at.sample_in_epoch = 0;
    }
  }
  return all;
}

/// What two processes saw, one after the other.
struct SeenRun {
  std::vector<Seen> seen;
  int validations = 0;
  std::optional<Time> total;  // of the plan of the last process
};

void go_on(SeenRun& run,
           const std::filesystem::path& directory,
           const Data& data,
           int64_t save_at,
           bool stops_there) {
  ProbeCallback::Options probe;
  probe.fit_start = [&](Trainer& trainer, const DataLoader&) {
    run.total = trainer.state().plan->length().total;
  };
  probe.train_batch_end = [&](Trainer& trainer) {
    const Timestamp& time = trainer.state().timestamp;
    run.seen.push_back({time.epoch, time.sample_in_epoch, time.sample, time.update});
  };
  probe.run_validation = [&](std::optional<int64_t>, bool) { ++run.validations; };
  TrainerOptions options = tiny_options(directory);
  options.callbacks = {use<ProbeCallback>(probe)};
  options.checkpoint.steps = save_at;
  options.loop.num_epochs = kEpochs;
  options.loop.grad_accum_steps = data.group;
  options.loop.eval_frequency = "1ep";
  Trainer trainer(options, quiet_log());
  FitRun fit(trainer, data.loader(), {tiny_loader("val", 2)}, {});
  while (!(stops_there && trainer.state().global_step() == save_at) && fit.advance()) {
  }
}

Data draw(KeyedRandom& random) {
  Data data;
  data.size = 1 + static_cast<int64_t>(random.below(40));
  data.drops_last = random.below(2) == 0;
  data.shuffles = random.below(2) == 0;
  const auto longest = static_cast<uint64_t>(data.drops_last ? data.size : data.size + 5);
  data.batch = 1 + static_cast<int64_t>(random.below(longest));
  data.group = 1 + static_cast<int64_t>(random.below(3));
  data.streams = random.below(3) == 0;
  return data;
}

}  // namespace

TEST_SUITE_BEGIN("loops/resume_with_other_data");

TEST_CASE("a resume with larger batches ends the epoch whose rest makes no batch") {
  const TempDir dir;
  Data data;
  data.drops_last = true;
  SeenRun run;
  go_on(run, dir / "run", data, 9, true);
  CHECK(run.seen.back() == Seen{0, 90, 90, 9});
  data.batch = 32;
  go_on(run, dir / "run", data, 9, false);
  REQUIRE(run.seen.size() == 15);
  CHECK(run.seen[9] == Seen{1, 32, 122, 10});
  CHECK(run.seen.back() == Seen{kEpochs, 0, 282, 15});
  CHECK(run.total == Time(15));
  CHECK(run.validations == kEpochs);
}

TEST_CASE("a resume with a data set that shrank goes on with the next epoch") {
  for (const bool streams : {false, true}) {
    CAPTURE(streams);
    const TempDir dir;
    Data data;
    data.streams = streams;
    SeenRun run;
    go_on(run, dir / "run", data, 8, true);
    data.size = 50;
    go_on(run, dir / "run", data, 8, false);
    REQUIRE(run.seen.size() == 18);
    CHECK(run.seen[8] == Seen{1, 10, 90, 9});
    CHECK(run.seen.back() == Seen{kEpochs, 0, 180, 18});
    CHECK(run.validations == kEpochs);
  }
}

TEST_CASE("a run that is over stays as it was, whatever its data is now") {
  const TempDir dir;
  Data data;
  SeenRun run;
  go_on(run, dir / "run", data, 30, false);
  CHECK(run.seen.size() == 30);
  data.size = 5;
  go_on(run, dir / "run", data, 30, false);
  CHECK(run.seen.size() == 30);
}

TEST_CASE(
    "whatever changes in data and batches between two processes, counters follow the samples and "
    "the run ends at its total") {
  const int trials = 150 * campaign_scale();
  for (int trial = 0; trial < trials; ++trial) {
    KeyedRandom random(48, static_cast<uint64_t>(trial));
    const Data before = draw(random);
    Data after = draw(random);
    after.streams = before.streams;
    const std::vector<Seen> whole = expected(before, {});
    const auto updates = static_cast<uint64_t>(whole.back().update);
    if (updates < 2) {
      continue;
    }
    const int64_t saved_at = 1 + static_cast<int64_t>(random.below(updates - 1));
    INFO("trial " << trial << ": " << before.text() << "; from update " << saved_at << " on "
                  << after.text());

    const TempDir dir;
    SeenRun run;
    go_on(run, dir / "run", before, saved_at, true);
    std::vector<Seen> wanted = expected(before, {}, saved_at);
    REQUIRE(run.seen == wanted);
    go_on(run, dir / "run", after, saved_at, false);
    const std::vector<Seen> rest = expected(after, wanted.back());
    wanted.insert(wanted.end(), rest.begin(), rest.end());
    REQUIRE(run.seen == wanted);
    REQUIRE(run.validations == kEpochs);
    if (run.total) {
      REQUIRE(*run.total == Time(wanted.back().update));
    }
  }
}

TEST_SUITE_END();
