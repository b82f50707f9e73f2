#include "tracing/timeline.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <chrono>
#include <string>

#include "backends/backend.h"
#include "core/tensor_map.h"
#include "support/step_probe.h"
#include "tracing/make_backend.h"
#include "tracing/plan/replay_stopwatch.h"
#include "tracing/recording/dispatcher.h"
#include "tracing/recording/recorder.h"

TEST_SUITE_BEGIN("tracing/timeline");

using namespace rondo;
using namespace rondo::test;

namespace {

/// Has its own frame: a line of the timeline names it.
__attribute__((noinline)) Outputs square(const Batch& batch) {
  return Outputs{{"y", batch["x"].mm(batch["x"].t()).sum()}};
}

StepReport report_of(int64_t timed_replays, int64_t replays) {
  BackendOptions options;
  options.timed_replays = timed_replays;
  const auto backend = make_backend(options, TextLog(LogLevel::Error));
  ClosureQueue queue;
  for (int64_t step = 0; step < replays + 2; ++step) {
    backend->run({"train", {}, "fp32"}, {{"x", torch::rand({40, 30})}}, square, IsDue(), queue);
  }
  return backend->reports().at(0);
}

// A clock that stands still while nothing is done, but to be read takes its time as well.
using std::chrono::nanoseconds;
ReplayStopwatch::Clock::time_point time_now;

ReplayStopwatch::Clock::time_point read_clock() {
  return time_now += nanoseconds(30);
}

Plan plan_of_square() {
  register_with_dispatcher();
  const Batch batch{{"x", torch::rand({40, 30})}};
  Recorder recorder("test", batch, [] { return CapturedState(); });
  Outputs outputs;
  {
    const RecordingScope scope(recorder);
    outputs = square(batch);
  }
  return make_plan(recorder.finish(outputs), {});
}

/// A replay of two instructions, of which the second may be left out.
void replay(ReplayStopwatch& stopwatch, nanoseconds first, nanoseconds second) {
  stopwatch.start();
  time_now += first;
  stopwatch.lap(0);
  if (second > nanoseconds(0)) {
    time_now += second;
    stopwatch.lap(1);
  }
  stopwatch.stop();
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

}  // namespace

TEST_CASE("a timeline names what each instruction is") {
  const StepTimeline timeline = report_of(10, TimingSchedule::of(10).replays()).timeline;
  CHECK(timeline.replays == 10);
  CHECK(timeline.replay_s > 0.0);
  REQUIRE(timeline.instructions.size() == 2);
  CHECK(timeline.instructions[0].op == "aten::mm");
  CHECK(timeline.instructions[0].bytes == 4 * (40 * 30 + 30 * 40 + 40 * 40));
  CHECK(timeline.instructions[0].seconds > 0.0);
  CHECK(timeline.instructions[1].op == "aten::sum");
  CHECK(timeline.instructions[1].module == "forward");
  CHECK(timeline.instructions[0].source.find("square") != std::string::npos);
}

TEST_CASE("instructions add up to a replay that nobody times: reading the clock is left out") {
  ReplayStopwatch stopwatch(2, TimingSchedule::of(10), &read_clock);
  const int64_t replays = TimingSchedule::of(10).replays();
  for (int64_t i = 0; i < replays; ++i) {
    const bool is_cold = i < replays - 20;
    const bool is_interrupted = i % 5 == 0;
    const int slower = is_cold ? 3 : is_interrupted ? 1000 : 1;
    replay(stopwatch, slower * nanoseconds(200), slower * nanoseconds(50));
  }
  replay(stopwatch, nanoseconds(1), nanoseconds(1));  // one more, which is not timed
  const StepTimeline timeline = stopwatch.timeline(plan_of_square());
  CHECK(timeline.replays == 10);
  REQUIRE(timeline.instructions.size() == 2);
  CHECK(timeline.instructions[0].seconds * 1e9 == doctest::Approx(200));
  CHECK(timeline.instructions[1].seconds * 1e9 == doctest::Approx(50));
  CHECK(timeline.replay_s * 1e9 == doctest::Approx(250));
}

TEST_CASE("an instruction that few replays run counts by their share") {
  ReplayStopwatch stopwatch(2, TimingSchedule::of(10), &read_clock);
  for (int64_t i = 0; i < TimingSchedule::of(10).replays(); ++i) {
    replay(stopwatch, nanoseconds(200), nanoseconds(i / 2 % 2 == 0 ? 60 : 0));
  }
  const StepTimeline timeline = stopwatch.timeline(plan_of_square());
  REQUIRE(timeline.instructions.size() == 2);
  CHECK(timeline.instructions[0].seconds * 1e9 == doctest::Approx(200));
  CHECK(timeline.instructions[1].seconds * 1e9 == doctest::Approx(30));
}

TEST_CASE("a schedule says which replays are timed: none while it waits and warms up") {
  ReplayStopwatch stopwatch(2, {1, 2, 3}, &read_clock);
  for (int64_t i = 0; i < 9; ++i) {
    replay(stopwatch, nanoseconds(i < 3 ? 10000 : 200), nanoseconds(50));
  }
  replay(stopwatch, nanoseconds(10000), nanoseconds(50));  // past its end
  const StepTimeline timeline = stopwatch.timeline(plan_of_square());
  CHECK(timeline.replays == 3);
  CHECK(timeline.instructions.at(0).seconds * 1e9 == doctest::Approx(200));
  CHECK(timeline.replay_s * 1e9 == doctest::Approx(250));
}

TEST_CASE("only as many replays are timed as there were, and none unless it is asked for") {
  CHECK(report_of(10, TimingSchedule::of(10).replays() - 14).timeline.replays == 3);
  CHECK(report_of(10, 4).timeline.replays == 0);
  const StepTimeline none = report_of(0, 20).timeline;
  CHECK(none.replays == 0);
  CHECK(none.instructions.empty());
  CHECK(timeline_table(none).empty());
}

TEST_CASE("a trace has an event an instruction, a table its operators") {
  const StepTimeline timeline = report_of(5, TimingSchedule::of(5).replays()).timeline;
  const std::string trace = chrome_trace("train", timeline);
  CHECK(count(trace, "\"ph\": \"X\"") == 2);
  CHECK(trace.front() == '{');
  CHECK(count(timeline_table(timeline), "aten::mm") == 2);
}

TEST_CASE("the memory of a plan is known by what it is for") {
  const StepMemory memory = report_of(0, 3).memory;
  CHECK(memory.inputs == 40 * 30 * 4);
  CHECK(memory.arena >= 40 * 40 * 4);
  CHECK(memory.arena <= 40 * 40 * 4 + 128);
  CHECK(memory.captured.empty());
  REQUIRE(memory.fullest.size() == 1);
  CHECK(memory.adopted == 4);
  CHECK(memory.fullest[0].op == "aten::mm");
  CHECK(memory.fullest[0].bytes == 40 * 40 * 4);
  CHECK(memory.capture == 40 * 40 * 4 + 4);  // the product and its sum; x.t() is x
}

TEST_SUITE_END();
