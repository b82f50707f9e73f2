#include "tracing/plan/planned_executor.h"

#include <doctest/doctest.h>
#include <torch/nn/functional/loss.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdlib>
#include <functional>
#include <regex>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "backends/generator_state.h"
#include "backends/scoped.h"
#include "core/error.h"
#include "core/operator_facts.h"
#include "core/state_dict.h"
#include "support/step_probe.h"
#include "tracing/error_text.h"
#include "tracing/find_instruction.h"
#include "tracing/make_backend.h"
#include "tracing/plan/out_variant.h"
#include "tracing/recording/dispatcher.h"
#include "tracing/recording/recorder.h"

TEST_SUITE_BEGIN("tracing/plan/planned_executor");

using namespace rondo;
using namespace rondo::test;

namespace {

StepProgram record(const std::function<at::Tensor(const at::Tensor&)>& body,
                   const at::Tensor& x,
                   const CapturedState& state = {}) {
  register_with_dispatcher();
  const at::NoGradGuard no_grad;
  const Batch batch{{"x", x}};
  Recorder recorder("test", batch, [=] { return state; });
  Outputs outputs;
  {
    const RecordingScope scope(recorder);
    outputs.set("y", body(batch["x"]));
  }
  return recorder.finish(outputs);
}

int count(const Plan& plan, Lowering lowering) {
  int found = 0;
  for (const Lowering one : plan.lowerings) {
    found += one == lowering ? 1 : 0;
  }
  return found;
}

c10::OperatorHandle named(const char* name, const char* overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
}

}  // namespace

namespace {

/// Whether "rondo_test::plus_one" throws.
bool is_moody = false;

at::Tensor plus_one(const at::Tensor& x) {
  if (is_moody) {
    throw std::runtime_error("not today");
  }
  return x + 1;
}

/// Computes something else for numbers that are seldom drawn.
at::Tensor& plus_one_out(const at::Tensor& x, at::Tensor& out) {
  return at::add_out(out, x, at::where(x > 1000, 1.5, 1.0));
}

at::Tensor plus_two(const at::Tensor& x) {
  return x + 2;
}

/// Computes something else.
at::Tensor& plus_two_out(const at::Tensor& x, at::Tensor& out) {
  return at::add_out(out, x, at::scalar_tensor(1.5));
}

at::Tensor call(const char* name, const at::Tensor& x) {
  return named(name, "").typed<at::Tensor(const at::Tensor&)>().call(x);
}

/// Whether "rondo_test::two_parts" gives tensors of their own, which have too little memory.
bool gives_apart = false;

/// Two results in one memory: the first three numbers, and the others.
std::tuple<at::Tensor, at::Tensor> two_parts(const at::Tensor& x) {
  const at::Tensor both = x * 2;
  const at::Tensor head = both.narrow(0, 0, 3);
  const at::Tensor tail = both.narrow(0, 3, both.numel() - 3);
  return gives_apart ? std::tuple(head.clone(), tail.clone()) : std::tuple(head, tail);
}

/// Who else holds the memory of what "rondo_test::every_other" returns.
at::Tensor held;

at::Tensor every_other(const at::Tensor& x) {
  held = x * 3;
  return held.view({-1, 2}).select(1, 1);
}

/// What follows from both.
at::Tensor of_parts(const at::Tensor& x) {
  const auto [head, tail] = named("rondo_test::two_parts", "")
                                .typed<std::tuple<at::Tensor, at::Tensor>(const at::Tensor&)>()
                                .call(x);
  return at::cat({head.sin(), tail.cos(), call("rondo_test::every_other", x).exp()});
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(rondo_test, made) {
  constexpr auto kCpu = c10::DispatchKey::CPU;
  made.def("plus_one(Tensor x) -> Tensor");
  made.def("plus_one.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)");
  made.impl("plus_one", torch::dispatch(kCpu, plus_one));
  made.impl("plus_one.out", torch::dispatch(kCpu, plus_one_out));
  made.def("plus_two(Tensor x) -> Tensor");
  made.def("plus_two.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)");
  made.impl("plus_two", torch::dispatch(kCpu, plus_two));
  made.impl("plus_two.out", torch::dispatch(kCpu, plus_two_out));
  made.def("two_parts(Tensor x) -> (Tensor, Tensor)");
  made.impl("two_parts", torch::dispatch(kCpu, two_parts));
  made.def("every_other(Tensor x) -> Tensor");
  made.impl("every_other", torch::dispatch(kCpu, every_other));
}

TEST_CASE("an out variant is found by its arguments, and only one that LibTorch computes with") {
  const auto found = [](const char* name, const char* overload) {
    const auto out = find_out_variant(named(name, overload));
    return out ? out->schema().overload_name() : std::string("none");
  };
  CHECK(found("aten::mm", "") == "out");
  CHECK(found("aten::add", "Tensor") == "out");
  CHECK(found("aten::sum", "dim_IntList") == "IntList_out");
  CHECK(found("aten::gelu_backward", "") == "grad_input");
  CHECK(found("aten::convolution", "") == "none");
  CHECK(found("aten::mse_loss", "") == "out");
}

TEST_CASE("views cost nothing and see what is written into their storage") {
  const auto body = [](const at::Tensor& x) {
    at::Tensor y = x.mul(2).view({6, 4});
    y.select(0, 1).add_(1);
    return y.t().narrow(0, 1, 2).sin();
  };
  const at::Tensor x = torch::rand({4, 6});
  PlannedExecutor plan(record(body, x), TextLog(LogLevel::Error));
  CHECK(count(plan.plan(), Lowering::Nothing) >= 4);
  for (int i = 0; i < 3; ++i) {
    const at::Tensor next = torch::rand({4, 6});
    CHECK(equal_bytes(plan.run({{"x", next}}, kAlwaysDue)[0], body(next)));
  }
}

TEST_CASE("memory of what an operator allocated itself is given back after its last use") {
  const auto body = [](const at::Tensor& x) {
    const at::Tensor weight = at::ones({1, 1, 3, 3});
    const at::Tensor y = at::conv_transpose2d(x, weight);
    return at::conv_transpose2d(y, weight).sum();
  };
  const at::Tensor x = torch::rand({2, 1, 9, 9});
  PlannedExecutor plan(record(body, x), TextLog(LogLevel::Error));
  CHECK(count(plan.plan(), Lowering::Adopting) >= 2);
  for (int i = 0; i < 3; ++i) {
    const at::Tensor next = torch::rand({2, 1, 9, 9});
    CHECK(equal_bytes(plan.run({{"x", next}}, kAlwaysDue)[0], body(next)));
  }
}

TEST_CASE("operators that allocate their results are counted by name") {
  const auto body = [](const at::Tensor& x) {
    const at::Tensor y = at::conv_transpose2d(x, x.narrow(0, 0, 1));
    return at::conv_transpose2d(y, x.narrow(0, 1, 1)).mul(2).sin();
  };
  const PlannedExecutor plan(record(body, torch::rand({2, 1, 9, 9})), TextLog(LogLevel::Error));
  CHECK(plan.adopted_operators() == OperatorCounts{{"aten::convolution", 2}});
}

TEST_CASE("results of an operator that lie in one memory, or in somebody else's, are read whole") {
  const at::Tensor x = torch::rand({4000});
  PlannedExecutor plan(record(of_parts, x), TextLog(LogLevel::Error));
  CHECK(count(plan.plan(), Lowering::Adopting) >= 2);
  for (int i = 0; i < 3; ++i) {
    const at::Tensor next = torch::rand({4000});
    CHECK(equal_bytes(plan.run({{"x", next}}, kAlwaysDue)[0], of_parts(next)));
  }
  const auto make = [] {
    StepProbe probe;
    probe.batch = [](int step) { return Batch{{"x", random_batch(step, 200)["x"].flatten()}}; };
    probe.body = [](Backend&, const Batch& batch) { return Outputs{{"y", of_parts(batch["x"])}}; };
    return probe;
  };
  const auto eager = backend_of("eager");
  const auto traced = backend_of("traced", "off");
  CHECK(first_difference(run_probe(make, *eager, 6).bytes, run_probe(make, *traced, 6).bytes) ==
        "");
}

TEST_CASE("results with less memory than when the step was captured are an error") {
  const at::Tensor x = torch::rand({8});
  PlannedExecutor plan(record(of_parts, x), TextLog(LogLevel::Error));
  const Scoped<bool> apart(gives_apart, true);
  CHECK_THROWS_AS(plan.run({{"x", x}}, kAlwaysDue), CaptureError);
}

TEST_CASE("a replay that fails says in which instruction, of what, and why") {
  const at::Tensor x = torch::rand({8});
  PlannedExecutor plan(record(of_parts, x), TextLog(LogLevel::Error));
  const Scoped<bool> apart(gives_apart, true);
  const std::string whole = error_text([&] { plan.run({{"x", x}}, kAlwaysDue); });
  const std::string pieces = error_text([&] {
    plan.start({{"x", x}}, kAlwaysDue);
    plan.advance(Deadline::max());
  });
  for (const std::string& message : {whole, pieces}) {
    CAPTURE(message);
    for (const char* fact : {"%0", "rondo_test::two_parts", "forward", "12 bytes", "32 bytes"}) {
      CHECK(message.find(fact) != std::string::npos);
    }
  }
}

TEST_CASE("adopted memory is given back even where its last use is not due") {
  const at::Tensor x = torch::rand({2, 1, 9, 9});
  StepProgram program = record(
      [](const at::Tensor& image) {
        const at::Tensor y = at::conv_transpose2d(image, at::ones({1, 1, 3, 3}));
        y.sum();
        return y.exp();
      },
      x);
  program.closures = {{0, {program.outputs[0].second}, Cadence()}};
  program.outputs[0].second = find(program, "aten::sum").results[0].slots[0];
  const SlotId adopted = find(program, "aten::convolution").results[0].slots[0];
  PlannedExecutor plan(program, TextLog(LogLevel::Error));
  for (const DueSet due : {kAlwaysDue, DueSet{1} << kDueClosures}) {
    plan.run({{"x", x}}, due);
    CHECK(plan.plan().memory->home(adopted) == Home::Adopted);
    CHECK(plan.plan().memory->tensor(adopted).storage().data() == nullptr);
    plan.start({{"x", x}}, due);
    CHECK(plan.advance(Deadline::max()) != nullptr);
    CHECK(plan.plan().memory->tensor(adopted).storage().data() == nullptr);
  }
}

TEST_CASE("a batch may lie anywhere, and begin anywhere in its storage") {
  const auto body = [](const at::Tensor& x) { return x.t().mm(x); };
  const at::Tensor all = torch::rand({40, 3});
  PlannedExecutor plan(record(body, all.narrow(0, 3, 5)), TextLog(LogLevel::Error));
  for (const int64_t from : {0, 7, 31}) {
    const at::Tensor x = all.narrow(0, from, 5);
    CHECK(equal_bytes(plan.run({{"x", x}}, kAlwaysDue)[0], body(x)));
  }
}

TEST_CASE("the same random numbers are drawn as by the step as written") {
  const auto body = [](const at::Tensor& x) {
    return at::dropout(x, 0.5, true) + at::randn_like(x) + at::randperm(24).view({4, 6});
  };
  const at::Tensor x = torch::rand({4, 6});
  PlannedExecutor plan(record(body, x), TextLog(LogLevel::Error));
  torch::manual_seed(3);
  const at::Tensor first = body(x);
  const at::Tensor second = body(x);
  torch::manual_seed(3);
  CHECK(equal_bytes(plan.run({{"x", x}}, kAlwaysDue)[0], first));
  CHECK(equal_bytes(plan.run({{"x", x}}, kAlwaysDue)[0], second));
}

TEST_CASE("the interpreter and the plan leave the same bytes") {
  const auto make = [] {
    return descent([](const auto& x, const auto& label, const auto& w, const auto& b) {
      return torch::nn::functional::cross_entropy(x.mm(w).tanh() + b, label);
    });
  };
  const auto run = [&](const char* executor) {
    BackendOptions options;
    options.executor = executor;
    const auto backend = make_backend(options, TextLog(LogLevel::Error));
    return run_probe(make, *backend, 8).bytes;
  };
  CHECK(first_difference(run("plan"), run("interpreter")) == "");
}

TEST_CASE("a run in pieces stops after each instruction and leaves the same bytes") {
  const auto body = [](const at::Tensor& x) {
    return (at::dropout(x, 0.5, true).mm(x.t()).sin() + 1).exp().sum();
  };
  const at::Tensor x = torch::rand({4, 6});
  PlannedExecutor plan(record(body, x), TextLog(LogLevel::Error));
  torch::manual_seed(3);
  const at::Tensor expected = body(x);
  for (int run = 0; run < 3; ++run) {
    torch::manual_seed(3);
    REQUIRE(plan.start({{"x", x}}, kAlwaysDue));
    size_t pieces = 1;
    const std::vector<at::Tensor>* results = plan.advance(Deadline::min());
    for (; results == nullptr; ++pieces) {
      results = plan.advance(Deadline::min());
    }
    CHECK(pieces == plan.plan().instructions.size());
    CHECK(equal_bytes((*results)[0], expected));
  }
}

TEST_CASE(
    "an operator of one's own that can be prepared is prepared once and called in each step") {
  static int prepared = 0;
  static int called = 0;
  static const torch::Library library = [] {
    torch::Library made(torch::Library::FRAGMENT, "rondo_test", {}, __FILE__, __LINE__);
    made.def("twice_(Tensor(a!) x) -> ()");
    made.impl("twice_",
              torch::dispatch(c10::DispatchKey::CPU, [](const at::Tensor& x) { x.mul_(2); }));
    return made;
  }();
  OperatorFacts facts{"rondo_test::twice_(Tensor(a!) x) -> ()"};
  facts.prepare = [](const std::vector<c10::IValue>& arguments) {
    ++prepared;
    return [x = arguments[0].toTensor()] {
      ++called;
      x.mul_(2);
    };
  };
  register_operator_facts(std::move(facts));
  const auto body = [](const at::Tensor& x) {
    const at::Tensor y = x.add(1);
    named("rondo_test::twice_", "").typed<void(const at::Tensor&)>().call(y);
    return y.sin();
  };
  const at::Tensor x = torch::rand({3});
  PlannedExecutor plan(record(body, x), TextLog(LogLevel::Error));
  for (int i = 0; i < 3; ++i) {
    CHECK(equal_bytes(plan.run({{"x", x}}, kAlwaysDue)[0], body(x)));
  }
  CHECK(prepared == 1);
  CHECK(called == 3);
}

TEST_CASE("an out variant that gives other bytes than the operator is found out and not used") {
  const auto body = [](const at::Tensor& x) { return call("rondo_test::plus_two", x).sin(); };
  const at::Tensor x = torch::rand({3, 5});
  PlannedExecutor executor(record(body, x), TextLog(LogLevel::Error));
  CHECK(executor.plan().instructions[0].lowering == Lowering::Adopting);
  CHECK(equal_bytes(executor.run({{"x", x}}, kAlwaysDue)[0], body(x)));
}

TEST_CASE("a kernel that gives other bytes on the data of a step is found out and replaced") {
  const auto body = [](const at::Tensor& x) { return call("rondo_test::plus_one", x).sin(); };
  const at::Tensor x = torch::rand({3, 5}) + 1000;
  for (const bool is_tried_before : {false, true}) {
    CAPTURE(is_tried_before);
    PlannedExecutor executor(record(body, x), TextLog(LogLevel::Error));
    CHECK(executor.plan().instructions[0].lowering == Lowering::Out);
    if (is_tried_before) {
      executor.try_kernels({{"x", x}});
      CHECK(executor.plan().instructions[0].lowering == Lowering::Copying);
    }
    for (int i = 0; i < 5; ++i) {
      CHECK(equal_bytes(executor.run({{"x", x}}, kAlwaysDue)[0], body(x)));
      CHECK(executor.plan().instructions[0].lowering == Lowering::Copying);
    }
  }
}

TEST_CASE(
    "trying kernels changes neither state nor batch nor random numbers, even if it is cut short") {
  const at::Tensor w = torch::rand({4, 6});
  const auto body = [&](const at::Tensor& x) {
    w.add_(x.mean());
    w.normal_();
    x.mul_(2);
    return call("rondo_test::plus_one", at::dropout(x, 0.5, true) + w);
  };
  const at::Tensor x = torch::rand({4, 6});
  PlannedExecutor executor(record(body, x, {{"w", w}}), TextLog(LogLevel::Error));
  CHECK(executor.has_trials());
  for (const bool throws : {true, false}) {
    CAPTURE(throws);
    const at::Tensor w_before = w.clone();
    const at::Tensor x_before = x.clone();
    const at::Tensor numbers_before = generator_state();
    {
      const Scoped<bool> mood(is_moody, throws);
      executor.try_kernels({{"x", x}});
    }
    CHECK(equal_bytes(w, w_before));
    CHECK(equal_bytes(x, x_before));
    CHECK(equal_bytes(generator_state(), numbers_before));
    CHECK(executor.has_trials() == throws);
  }
  const at::Tensor numbers = generator_state();
  const at::Tensor w_before = w.clone();
  const at::Tensor got = executor.run({{"x", x.clone()}}, kAlwaysDue)[0].clone();
  const at::Tensor w_after = w.clone();
  set_generator_state(numbers);
  w.copy_(w_before);
  CHECK(equal_bytes(got, body(x.clone())));
  CHECK(equal_bytes(w, w_after));
}

TEST_CASE("kernels are not tried on a batch that the step gave another shape") {
  const auto body = [](const at::Tensor& x) { return x.t().mm(x); };
  const at::Tensor x = torch::rand({5, 3});
  PlannedExecutor executor(record(body, x), TextLog(LogLevel::Error));
  for (const at::Tensor& other : {x.narrow(0, 1, 4), x.t(), at::empty({0})}) {
    executor.try_kernels({{"x", other}});
    CHECK(executor.has_trials());
  }
  executor.try_kernels({{"x", x}});
  CHECK_FALSE(executor.has_trials());
}

TEST_CASE("what comes behind an operator that may do anything is tried in the first replay") {
  static const torch::Library library = [] {
    torch::Library made(torch::Library::FRAGMENT, "rondo_test", {}, __FILE__, __LINE__);
    made.def("secret(Tensor x) -> Tensor");
    made.impl("secret",
              torch::dispatch(c10::DispatchKey::CPU, [](const at::Tensor& x) { return x * 2; }));
    return made;
  }();
  const auto body = [](const at::Tensor& x) { return call("rondo_test::secret", x.sin()).cos(); };
  const at::Tensor x = torch::rand({3, 5});
  StepProgram program = record(body, x);
  for (Instruction& instruction : program.instructions) {
    instruction.is_opaque = operator_name(instruction.op) == "rondo_test::secret";
  }
  PlannedExecutor executor(program, TextLog(LogLevel::Error));
  CHECK(executor.memory().late_trial > 0);
  executor.try_kernels({{"x", x}});
  CHECK(executor.has_trials());
  for (int i = 0; i < 3; ++i) {
    CHECK(equal_bytes(executor.run({{"x", x}}, kAlwaysDue)[0], body(x)));
    CHECK_FALSE(executor.has_trials());
  }
}

TEST_CASE("a result takes the place of an argument that nothing needs any more") {
  const at::Tensor x = torch::rand({40, 50});
  const auto chain = [](const at::Tensor& t) { return at::relu((t * t) - t).mul(t) + t; };
  PlannedExecutor executor(record(chain, x), TextLog(LogLevel::Error));
  CHECK(executor.memory().arena == 40 * 50 * 4);
  CHECK(executor.plan().written_over == 4);
  PlanOptions apart;
  apart.in_place = false;
  CHECK(make_plan(record(chain, x), apart).written_over == 0);
  const auto kept = [](const at::Tensor& t) {
    const at::Tensor square = t * t;
    return at::relu(square - t) + square;  // the square is needed later
  };
  PlannedExecutor other(record(kept, x), TextLog(LogLevel::Error));
  CHECK(other.memory().arena == 2 * 40 * 50 * 4);
  for (int i = 0; i < 5; ++i) {
    const at::Tensor y = torch::rand({40, 50});
    CHECK(equal_bytes(executor.run({{"x", y}}, kAlwaysDue)[0], chain(y)));
    CHECK(equal_bytes(other.run({{"x", y}}, kAlwaysDue)[0], kept(y)));
  }
}

TEST_CASE(
    "the text of a plan has the arena's blocks, of which those in use together do not overlap") {
  struct Block {
    int64_t offset, bytes, first, last;
  };

  const at::Tensor x = torch::rand({40, 50});
  const auto body = [](const at::Tensor& t) {
    const at::Tensor square = t * t;
    return at::relu(square - t) + square;
  };
  const Plan plan = make_plan(record(body, x));
  const std::string text = to_text(plan);
  static const std::regex line(R"(\n  block at (\d+): (\d+) bytes, instructions (\d+) to (\d+)\n)");
  std::vector<Block> blocks;
  for (auto from = text.cbegin(); true;) {
    std::smatch found;
    if (!std::regex_search(from, text.cend(), found, line)) {
      break;
    }
    blocks.push_back(
        {std::stoll(found[1]), std::stoll(found[2]), std::stoll(found[3]), std::stoll(found[4])});
    from = found[0].second - 1;  // the line's end begins the next one
  }
  REQUIRE(blocks.size() == 2);
  for (const Block& block : blocks) {
    CHECK(block.bytes == 40 * 50 * 4);
    CHECK(block.offset + block.bytes <= plan.memory->arena_bytes());
    CHECK(block.last < static_cast<int64_t>(plan.program.instructions.size()));
  }
  CHECK(blocks[0].first <= blocks[1].last);
  CHECK(blocks[1].first <= blocks[0].last);
  CHECK(std::abs(blocks[0].offset - blocks[1].offset) >= 40 * 50 * 4);
}

TEST_CASE("a result is not written over an argument of another dtype") {
  const auto body = [](const at::Tensor& x) {
    const at::Tensor mask = x > 0;  // of as many bytes as the result
    return at::masked_fill(x.narrow(0, 0, 100), mask.narrow(0, 0, 100), 7.0);
  };
  PlannedExecutor executor(record(body, torch::randn({400})), TextLog(LogLevel::Error));
  CHECK(count(executor.plan(), Lowering::Own) >= 1);
  CHECK(executor.plan().written_over == 0);
  for (int i = 0; i < 3; ++i) {
    const at::Tensor x = torch::randn({400});
    CHECK(equal_bytes(executor.run({{"x", x}}, kAlwaysDue)[0], body(x)));
  }
}

TEST_SUITE_END();
