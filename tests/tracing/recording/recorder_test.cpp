#include "tracing/recording/recorder.h"

#include <doctest/doctest.h>
#include <torch/library.h>
#include <torch/types.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/operator_facts.h"
#include "tracing/program/operator_effects.h"
#include "tracing/program/program_diff.h"
#include "tracing/recording/dispatcher.h"

TEST_SUITE_BEGIN("tracing/recording/recorder");

using namespace rondo;

namespace {

OperatorEffects effects_of(const char* name, const char* overload = "") {
  return rondo::effects_of(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload));
}

StepProgram record(const std::function<at::Tensor(const at::Tensor&)>& body,
                   const CapturedState& state = {}) {
  register_with_dispatcher();
  const Batch batch{{"x", torch::ones({2, 3})}};
  Recorder recorder("test", batch, [&] { return state; });
  Outputs outputs;
  {
    const RecordingScope scope(recorder);
    outputs.set("y", body(batch["x"]));
  }
  return recorder.finish(outputs);
}

std::vector<std::string> operators(const StepProgram& program) {
  std::vector<std::string> names;
  for (const Instruction& instruction : program.instructions) {
    names.push_back(operator_name(instruction.op));
  }
  return names;
}

int64_t writes(const OperatorEffects& effects) {
  return std::count(effects.writes.begin(), effects.writes.end(), true);
}

}  // namespace

TEST_CASE("effects: what schemas say, and what they forget") {
  CHECK(writes(effects_of("aten::add", "Tensor")) == 0);
  CHECK(writes(effects_of("aten::add_", "Tensor")) == 1);
  CHECK(writes(effects_of("aten::add", "out")) == 1);
  CHECK(writes(effects_of("aten::_foreach_add_", "Scalar")) == 1);
  CHECK(writes(effects_of("aten::native_batch_norm")) == 2);
  CHECK(writes(effects_of("aten::rrelu_with_noise")) == 1);
  CHECK(effects_of("aten::native_dropout").draws_random);
  CHECK(effects_of("aten::rand").draws_random);
  CHECK(effects_of("aten::normal_").draws_random);
  CHECK_FALSE(effects_of("aten::zeros").draws_random);
  CHECK(effects_of("aten::_local_scalar_dense").reads_host);
  CHECK(effects_of("aten::nonzero").reads_host);
  CHECK_FALSE(effects_of("aten::index", "Tensor").reads_host);
  CHECK_FALSE(effects_of("aten::is_same_size").reads_host);
  CHECK(effects_of("aten::transpose_").changes_view_only);
  CHECK_FALSE(effects_of("aten::add_", "Tensor").changes_view_only);
  CHECK(effects_of("aten::empty", "memory_format").allocates);
  CHECK_FALSE(effects_of("aten::set_", "source_Tensor").refusal.empty());
}

TEST_CASE("effects: a foreign operator that writes or draws is opaque") {
  static torch::Library library(
      torch::Library::FRAGMENT, "rondo_recorder_test", {}, __FILE__, __LINE__);
  library.def("writes_(Tensor(a!) x) -> ()");
  library.def("draws(Tensor x, Generator? generator) -> Tensor");
  library.def("plain(Tensor x) -> Tensor");
  CHECK(effects_of("rondo_recorder_test::writes_").is_opaque);
  CHECK(effects_of("rondo_recorder_test::draws").is_opaque);
  CHECK_FALSE(effects_of("rondo_recorder_test::plain").is_opaque);
  CHECK_FALSE(effects_of("aten::add_", "Tensor").is_opaque);
  register_with_dispatcher();
  CHECK(effects_of("rondo::host_call").is_opaque);
}

TEST_CASE("effects: facts vouch for a foreign operator, or say that it may do anything") {
  static torch::Library library(
      torch::Library::FRAGMENT, "rondo_facts_test", {}, __FILE__, __LINE__);
  OperatorFacts known{"rondo_facts_test::known_(Tensor(a!) x) -> ()"};
  OperatorFacts opaque{"rondo_facts_test::opaque(Tensor x) -> Tensor"};
  opaque.effects = OperatorFacts::Effects::Opaque;
  OperatorFacts collective{"rondo_facts_test::sum_of_ranks(Tensor x) -> Tensor"};
  collective.is_collective = true;
  for (OperatorFacts* facts : {&known, &opaque, &collective}) {
    library.def(facts->schema.c_str());
    register_operator_facts(std::move(*facts));
  }
  CHECK_FALSE(effects_of("rondo_facts_test::known_").is_opaque);
  CHECK(effects_of("rondo_facts_test::known_").follows_from_arguments);
  CHECK(writes(effects_of("rondo_facts_test::known_")) == 1);
  CHECK(effects_of("rondo_facts_test::opaque").is_opaque);
  CHECK(effects_of("rondo_facts_test::sum_of_ranks").is_opaque);
}

TEST_CASE("the outermost operators below autograd are recorded, composites decomposed") {
  const StepProgram program = record([](const at::Tensor& x) {
    return torch::linear(x, torch::ones({4, 3}));
  });
  CHECK(operators(program) == std::vector<std::string>{"aten::ones", "aten::t", "aten::mm"});
  REQUIRE(program.outputs.size() == 1);
  CHECK(program.outputs[0].first == "y");
}

TEST_CASE("slots tell inputs, captured state, constants and results; views share their storage") {
  const at::Tensor weight = torch::ones({3});
  const StepProgram program =
      record([&](const at::Tensor& x) { return (x * weight).t() * 0.5; }, {{"weight", weight}});
  const auto slot = [&](SlotId id) { return program.slots[static_cast<size_t>(id)]; };
  const Instruction& mul = program.instructions[0];
  CHECK(slot(mul.arguments[0].slots[0]).kind == SlotKind::Input);
  CHECK(slot(mul.arguments[0].slots[0]).name == "x");
  CHECK(slot(mul.arguments[1].slots[0]).kind == SlotKind::Captured);
  CHECK(slot(mul.arguments[1].slots[0]).name == "weight");
  const Instruction& view = program.instructions[1];
  CHECK(slot(view.results[0].slots[0]).storage == slot(mul.results[0].slots[0]).storage);
  CHECK(slot(view.results[0].slots[0]).strides == std::vector<int64_t>{1, 3});
}

TEST_CASE("a view of captured memory made before the step is captured, not frozen") {
  const at::Tensor flat = torch::arange(6, at::kFloat);
  const at::Tensor view = flat.narrow(0, 3, 3);
  const StepProgram program =
      record([&](const at::Tensor& x) { return x + view; }, {{"flat", flat}});
  const SlotId slot = program.instructions[0].arguments[1].slots[0];
  CHECK(program.slots[static_cast<size_t>(slot)].kind == SlotKind::Captured);
  CHECK(program.slots[static_cast<size_t>(slot)].name == "view of flat");
}

TEST_CASE("recording leaves no trace in the thread, and none in what autograd does") {
  at::Tensor w = torch::ones({3}).set_requires_grad(true);
  const auto gradient_operators = [&] {
    w.mutable_grad().reset();
    return operators(record(
        [&](const at::Tensor& x) {
          const at::Tensor loss = (x * w).sum();
          loss.backward();
          return loss;
        },
        {{"w", w}}));
  };
  const auto names = gradient_operators();
  CHECK(std::find(names.begin(), names.end(), "aten::clone") == names.end());
  CHECK(names == gradient_operators());
  CHECK(torch::ones({2}).add(1).sum().item<float>() == 4.0f);
}

TEST_CASE("an operator on another thread runs, and the recording is refused") {
  register_with_dispatcher();
  Recorder recorder("test", {}, [] { return CapturedState(); });
  {
    const RecordingScope scope(recorder);
    const auto keys = c10::impl::tls_local_dispatch_key_set();
    std::thread([&] {
      c10::impl::_force_tls_local_dispatch_key_set(keys);
      CHECK(torch::ones({2}).numel() == 2);
    }).join();
  }
  CHECK(recorder.finish({}).instructions.empty());
  REQUIRE(recorder.refusal());
  CHECK(recorder.refusal()->what.find("another thread") != std::string::npos);
}

TEST_CASE("a program is written out for people") {
  const StepProgram program = record([](const at::Tensor& x) { return (x + 1).relu(); });
  const std::string text = to_text(program);
  CHECK(text.find("x: Float[2, 3]") != std::string::npos);
  CHECK(text.find("aten::relu(") != std::string::npos);
  CHECK(text.find("alpha=1") != std::string::npos);
}

TEST_CASE("constants differ when their bits or their types do") {
  CHECK(to_text(c10::IValue(1)) != to_text(c10::IValue(1.0)));
  CHECK(to_text(c10::IValue(0.0)) != to_text(c10::IValue(-0.0)));
  CHECK(to_text(c10::IValue(0.1)) != to_text(c10::IValue(0.1 + 1e-17 * 2)));
  CHECK(to_text(c10::IValue(std::vector<int64_t>{1, 2})) == "[1, 2]");
  CHECK(to_text(c10::IValue()) != to_text(c10::IValue(false)));
}

TEST_CASE("two recordings of one step have no difference; another constant or shape is named") {
  const auto scaled = [](double factor) {
    return record([=](const at::Tensor& x) { return x.mul(2).add(x, factor); });
  };
  CHECK(first_difference(scaled(3), scaled(3)).text == "");
  CHECK(first_difference(scaled(3), scaled(4)).is_value);
  const std::string text = first_difference(scaled(3), scaled(4)).text;
  CHECK(text.find("operator 1") != std::string::npos);
  CHECK(text.find("alpha") != std::string::npos);
  const auto rows = [](int64_t count) {
    return record([=](const at::Tensor& x) { return x.narrow(0, 0, count).sum(); });
  };
  CHECK(first_difference(rows(1), rows(2)).is_value);
  const StepProgram other = record([](const at::Tensor& x) { return x.mul(2).sub(x); });
  CHECK_FALSE(first_difference(scaled(3), other).is_value);
}

TEST_CASE("the most memory of results: views of weights and batches are none of it") {
  const at::Tensor w = torch::ones({1000, 3});
  const StepProgram program = record(
      [&](const at::Tensor& x) {
        const at::Tensor y = x.mm(w.t());  // 2 x 1000
        const at::Tensor z = y.mm(w);      // 2 x 3
        return z.t() + x.t();              // 3 x 2, after y has died
      },
      {{"w", w}});
  CHECK(peak_of_results(program) == 4 * (2 * 1000 + 2 * 3));
}

TEST_SUITE_END();
