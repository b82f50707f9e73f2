// What is told of a validation: its results when it was whole, and why there are none else.

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "loops/sample_stream.h"
#include "support/probe_callback.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Stops a prediction after two batches.
class StopsPrediction final : public Callback {
 public:
  struct Options {
    int* batches = nullptr;  ///< counts them
  };

  explicit StopsPrediction(const Options& options) : options_(options) {}

  void on_predict_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) override {
    if (++*options_.batches == 2) {
      trainer.request_stop("enough");
    }
  }

 private:
  Options options_;
};

}  // namespace

TEST_SUITE_BEGIN("loops/validation_result");

TEST_CASE("a validation that a stop cuts short has no result, and the log says how far it came") {
  constexpr int64_t kBatches = 5;
  for (int64_t evaluated = 1; evaluated <= kBatches; ++evaluated) {
    CAPTURE(evaluated);
    const TempDir dir;
    std::vector<MemoryLogger::Entry> entries;
    std::string log;
    int64_t batches = 0;
    ProbeCallback::Options probe;
    probe.validate_batch_start = [&](Trainer& trainer, const Batch&) {
      if (++batches == evaluated) {
        trainer.request_stop("enough");
      }
    };
    TrainerOptions options = tiny_options(dir / "run");
    options.callbacks = {use<ProbeCallback>(probe)};
    options.loggers = {use<MemoryLogger>({&entries, nullptr})};
    Trainer trainer(options,
                    TextLog::to([&](LogLevel, std::string_view text) { log.append(text); }));
    const Metrics metrics = trainer.validate(tiny_loader("val", 2 * kBatches));
    const bool is_whole = evaluated == kBatches;
    CHECK(metrics.number("val/loss").has_value() == is_whole);
    CHECK(metrics.empty() != is_whole);
    CHECK(values_of(entries, "val/loss").size() == (is_whole ? 1 : 0));
    const bool is_told = log.find(std::to_string(evaluated) + " of 5") != std::string::npos;
    CHECK(is_told != is_whole);
  }
}

TEST_CASE("a fit that is stopped in a validation logs no result of it; its resume logs the whole") {
  const auto losses = [](bool is_stopped) {
    const TempDir dir;
    std::vector<MemoryLogger::Entry> entries;
    const auto fit = [&](int stop_in) {
      int batches = 0;
      ProbeCallback::Options probe;
      probe.validate_batch_start = [&](Trainer& trainer, const Batch&) {
        if (++batches == stop_in) {
          trainer.request_stop("enough");
        }
      };
      TrainerOptions options = tiny_options(dir / "run");
      options.callbacks = {use<ProbeCallback>(probe)};
      options.loggers = {use<MemoryLogger>({&entries, nullptr})};
      options.loop.max_steps = 4;
      options.loop.eval_frequency = 2;
      options.checkpoint.steps = 2;
      return Trainer(options, quiet_log()).fit(tiny_loader("train"), {tiny_loader("val")});
    };
    if (is_stopped) {
      const FitResult stopped = fit(3);
      CHECK(stopped.steps == 2);
      CHECK_FALSE(stopped.metrics.number("val/loss"));
      CHECK(values_of(entries, "val/loss").empty());
    }
    fit(0);
    return values_of(entries, "val/loss");
  };
  const auto whole = losses(false);
  REQUIRE(whole.size() == 2);
  CHECK(losses(true) == whole);
}

TEST_CASE("a whole validation has its result whatever log_steps is, also of what has no size") {
  for (const Time& log_steps : {Time(50), Time(0), Time("1ep")}) {
    const TempDir dir;
    std::vector<MemoryLogger::Entry> entries;
    TrainerOptions options = tiny_options(dir / "run");
    options.loggers = {use<MemoryLogger>({&entries, nullptr})};
    options.logging.log_steps = log_steps;
    Trainer trainer(options, quiet_log());
    SampleStream::Options stream;
    stream.samples = 14;
    const auto loss = trainer.validate(stream_loader(stream)).number("val/loss");
    REQUIRE(loss);
    CHECK(values_of(entries, "val/loss") == std::vector{std::pair(int64_t{0}, *loss)});
  }
}

TEST_CASE("a validation of a model that has diverged has NaN as its result") {
  const TempDir dir;
  std::vector<MemoryLogger::Entry> entries;
  ProbeCallback::Options probe;
  double value = 0.0;
  probe.after_forward = [&](Outputs& outputs) { outputs.set("loss", outputs["loss"].mul(value)); };
  TrainerOptions options = tiny_options(dir / "run");
  options.callbacks = {use<ProbeCallback>(probe)};
  options.loggers = {use<MemoryLogger>({&entries, nullptr})};
  Trainer trainer(options, quiet_log());
  CHECK(trainer.validate(tiny_loader("val")).number("val/loss") == 0.0);
  value = std::numeric_limits<double>::quiet_NaN();
  const auto loss = trainer.validate(tiny_loader("val")).number("val/loss");
  REQUIRE(loss);
  CHECK(std::isnan(*loss));
  CHECK(values_of(entries, "val/loss").size() == 2);
}

TEST_CASE("a prediction that a stop cuts short is none") {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir / "run");
  int batches = 0;
  options.callbacks = {use<StopsPrediction>({&batches})};
  Trainer trainer(options, quiet_log());
  CHECK(trainer.predict(tiny_loader("val")).items().empty());
  CHECK(batches == 2);
  CHECK_FALSE(std::filesystem::exists(trainer.state().artifact_dir / "predictions.pt"));
}

TEST_CASE("a validation without a batch warns") {
  const TempDir dir;
  std::vector<std::string> warnings;
  Trainer trainer(tiny_options(dir / "run"), quiet_log(&warnings));
  LoaderOptions batches;
  batches.batch_size = 20;
  batches.drop_last = true;
  CHECK(trainer.validate(tiny_loader("val", 10, batches), LoadFrom::nothing()).empty());
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("\"val\"") != std::string::npos);
  CHECK(warnings[0].find("20") != std::string::npos);
  CHECK(warnings[0].find("drop_last") != std::string::npos);
}

TEST_SUITE_END();
