#include "backends/timeline.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <string>

#include "backends/backend.h"
#include "core/tensor_map.h"
#include "support/step_probe.h"

TEST_SUITE_BEGIN("backends/timeline");

using namespace rondo;
using namespace rondo::test;

namespace {

/// Has its own frame: a line of the timeline names it.
__attribute__((noinline)) Outputs square(const Batch& batch) {
  return Outputs{{"y", batch["x"].mm(batch["x"].t()).sum()}};
}

StepReport report_of(int64_t timed_replays, int replays) {
  BackendOptions options;
  options.timed_replays = timed_replays;
  const auto backend = make_backend(options, TextLog(LogLevel::Error));
  ClosureQueue queue;
  for (int step = 0; step < replays + 2; ++step) {
    backend->run({"train", {}, "fp32"}, {{"x", torch::rand({40, 30})}}, square, IsDue(), queue);
  }
  return backend->reports().at(0);
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

}  // namespace

TEST_CASE("a timeline adds up to its replay and names what each instruction is") {
  const StepTimeline timeline = report_of(10, 30).timeline;
  CHECK(timeline.replays == 10);
  REQUIRE(timeline.instructions.size() == 2);
  CHECK(timeline.instructions[0].op == "aten::mm");
  CHECK(timeline.instructions[0].bytes == 4 * (40 * 30 + 30 * 40 + 40 * 40));
  CHECK(timeline.instructions[1].op == "aten::sum");
  CHECK(timeline.instructions[0].module == "forward");
  CHECK(timeline.instructions[0].source.find("square") != std::string::npos);
  const double sum = timeline.instructions[0].seconds + timeline.instructions[1].seconds;
  CHECK(sum > 0.0);
  CHECK(sum <= timeline.replay_s);
}

TEST_CASE("only as many replays are timed as there were, and none unless it is asked for") {
  CHECK(report_of(10, 8).timeline.replays == 3);
  const StepTimeline none = report_of(0, 20).timeline;
  CHECK(none.replays == 0);
  CHECK(none.instructions.empty());
  CHECK(timeline_table(none).empty());
}

TEST_CASE("a trace has an event an instruction, a table its operators") {
  const StepTimeline timeline = report_of(5, 20).timeline;
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
