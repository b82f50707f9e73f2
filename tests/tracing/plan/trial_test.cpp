#include "tracing/plan/trial.h"

#include <doctest/doctest.h>
#include <torch/library.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/torch_compat.h"
#include "support/step_probe.h"
#include "tracing/find_instruction.h"
#include "tracing/kernel_checks.h"
#include "tracing/plan/out_variant.h"
#include "tracing/plan/probe.h"
#include "tracing/plan/takes_all.h"
#include "tracing/program/kernels_only.h"

TEST_SUITE_BEGIN("tracing/plan/trial");

using namespace rondo;
using namespace rondo::test;

namespace {

/// What an operator does to a tensor that it is given besides writing it.
using Misuse = std::function<void(at::Tensor& out)>;

struct NamedMisuse {
  const char* name;
  Misuse misuse;
};

void set_address(at::Tensor& out, c10::DataPtr memory) {
  out.storage().set_data_ptr_noswap(std::move(memory));
}

const std::vector<NamedMisuse>& misuses() {
  static const std::vector<NamedMisuse> all = {
      {"grows", [](at::Tensor& out) { out.resize_({out.numel() * 100}).zero_(); }},
      {"shrinks", [](at::Tensor& out) { out.resize_({1}); }},
      {"reshapes", [](at::Tensor& out) { out.resize_({out.numel()}); }},
      {"turns", [](at::Tensor& out) { out.t_(); }},
      {"moves", [](at::Tensor& out) { out.set_(out.clone()); }},
      {"reallocates",
       [](at::Tensor& out) {
         set_address(out, c10::GetAllocator(c10::kCPU)->allocate(out.nbytes()));
       }},
  };
  return all;
}

at::Tensor half(const at::Tensor& x) {
  return x / 2;
}

/// Misuses its tensor from numbers above 1000 on, or always.
template <size_t kMisuse, bool kAlways>
at::Tensor& half_out(const at::Tensor& x, at::Tensor& out) {
  at::div_out(out, x, at::scalar_tensor(2));
  if (kAlways || x.max().item<float>() > 1000) {
    misuses()[kMisuse].misuse(out);
  }
  return out;
}

template <size_t kMisuse, bool kAlways>
void define(torch::Library& made) {
  const std::string name = std::string(misuses()[kMisuse].name) + (kAlways ? "" : "_at_times");
  made.def((name + "(Tensor x) -> Tensor").c_str());
  made.def((name + ".out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)").c_str());
  made.impl(name.c_str(), torch::dispatch(c10::DispatchKey::CPU, half));
  made.impl((name + ".out").c_str(),
            torch::dispatch(c10::DispatchKey::CPU, half_out<kMisuse, kAlways>));
}

template <size_t... kMisuses>
void define_all(torch::Library& made, std::index_sequence<kMisuses...>) {
  (define<kMisuses, true>(made), ...);
  (define<kMisuses, false>(made), ...);
}

at::Tensor call(const std::string& name, const at::Tensor& x) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(("rondo_trial::" + name).c_str(), "")
      .typed<at::Tensor(const at::Tensor&)>()
      .call(x);
}

/// Gives its argument more elements.
void stretch(const at::Tensor& x) {
  at::Tensor(x).resize_({x.numel() + 1});
}

/// A kernel of rondo's own for `aten::neg` that is right but for its misuse.
template <size_t kMisuse>
std::unique_ptr<Kernel> make_misusing_negation(const StepProgram&,
                                               const Instruction& instruction,
                                               const Operands& memory) {
  struct Negation final : Kernel {
    at::Tensor from;
    at::Tensor to;

    void run() override {
      at::neg_out(to, from);
      misuses()[kMisuse].misuse(to);
    }
  };

  auto negation = std::make_unique<Negation>();
  negation->from = memory.tensor(instruction.arguments[0].slots[0]);
  negation->to = memory.tensor(instruction.results[0].slots[0]);
  return negation;
}

using MakeKernel = decltype(&make_misusing_negation<0>);

template <size_t... kMisuses>
std::vector<MakeKernel> negations(std::index_sequence<kMisuses...>) {
  return {make_misusing_negation<kMisuses>...};
}

constexpr std::index_sequence<0, 1, 2, 3, 4, 5> kAll;

/// The memory of a program of one instruction: arguments outside, results each on its own.
std::unique_ptr<PlanMemory> memory_for(const StepProgram& program) {
  std::vector<Home> homes(static_cast<size_t>(program.storages), Home::Arena);
  for (const Slot& slot : program.slots) {
    if (slot.kind != SlotKind::Produced) {
      homes[static_cast<size_t>(slot.storage)] = Home::Outside;
    }
  }
  const auto place = [kept = std::make_shared<std::map<size_t, c10::DataPtr>>()](size_t storage,
                                                                                 int64_t bytes) {
    c10::DataPtr& memory = (*kept)[storage];
    memory = memory ? std::move(memory) : c10::GetAllocator(c10::kCPU)->allocate(bytes);
    return c10::DataPtr(memory.get(), c10::kCPU);
  };
  return std::make_unique<PlanMemory>(program, homes, place);
}

/// How the first call of an operator is run.
Lowering lowering_of(const Plan& plan, const std::string& op) {
  for (const PlannedInstruction& planned : plan.instructions) {
    if (operator_name(plan.program.instructions[planned.index].op) == op) {
      return planned.lowering;
    }
  }
  FAIL("no " << op);
  return Lowering::Nothing;
}

/// Runs what `body` does as a plan, in several steps, against the body itself.
/// \param lowering  of the operator in the end
void check_against_eager(const std::function<at::Tensor(const at::Tensor&)>& body,
                         const std::function<at::Tensor(int)>& x_of,
                         const std::string& op,
                         Lowering lowering) {
  const Recorded recorded([&](const Batch& batch) { return std::vector{body(batch["x"])}; },
                          {{"x", x_of(0)}});
  for (const bool is_tried_before : {false, true}) {
    CAPTURE(is_tried_before);
    PlannedExecutor plan(recorded.program, TextLog(LogLevel::Error));
    if (is_tried_before) {
      plan.try_kernels({{"x", x_of(0)}});
    }
    for (int step = 0; step < 6; ++step) {
      const at::Tensor x = x_of(step);
      CHECK(equal_bytes(plan.run({{"x", x}}, kAlwaysDue)[0], body(x)));
    }
    CHECK(lowering_of(plan.plan(), op) == lowering);
  }
}

using Loss = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& target)>;

/// Descent with a loss of [32, 128] numbers below 1.
StepProbe descent_with(const Loss& loss) {
  const at::Tensor w = (torch::randn({6, 128}) * 0.1).set_requires_grad(true);
  const at::Tensor lr = torch::full({}, 0.05, at::kDouble);
  StepProbe probe;
  probe.state = {{"w", w}, {"lr", lr}};
  probe.batch = [](int step) { return random_batch(step, 32); };
  probe.body = [=](Backend&, const Batch& batch) {
    w.mutable_grad().reset();
    const at::Tensor target = (batch["x"].sum(1, true) * 0.1).sigmoid().expand({32, 128});
    const at::Tensor value = loss(batch["x"].mm(w).sigmoid(), target);
    value.backward();
    descend({w}, lr);
    return Outputs{{"loss", value}};
  };
  return probe;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(rondo_trial, made) {
  define_all(made, kAll);
  made.def("stretch_(Tensor(a!) x) -> ()");
  made.impl("stretch_", torch::dispatch(c10::DispatchKey::CPU, stretch));
}

TEST_CASE("losses whose out variants resize their result train as written") {
  constexpr auto kMean = at::Reduction::Mean;
  constexpr auto kSum = at::Reduction::Sum;

  struct Row {
    const char* name;
    Loss loss;
  };

  const std::vector<Row> rows = {
      {"huber mean", [](auto& x, auto& y) { return at::huber_loss(x, y); }},
      {"huber sum", [](auto& x, auto& y) { return at::huber_loss(x, y, kSum, 0.1); }},
      {"cross entropy sum",
       [](auto& x, auto& y) { return at::binary_cross_entropy(x, y, {}, kSum); }},
      {"cross entropy mean",
       [](auto& x, auto& y) { return at::binary_cross_entropy(x, y, {}, kMean); }},
      {"mse", [](auto& x, auto& y) { return at::mse_loss(x, y); }},
      {"smooth l1", [](auto& x, auto& y) { return at::smooth_l1_loss(x, y, kSum); }},
      {"soft margin", [](auto& x, auto& y) { return at::soft_margin_loss(x, y.sub(0.5).sign()); }},
      {"multilabel margin",
       [](auto& x, auto& y) {
         return at::multilabel_margin_loss(x, y.mul(2).floor().to(at::kLong));
       }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(traced_against_eager([&] { return descent_with(row.loss); }) == "");
  }
}

TEST_CASE("results that the step as written takes apart from a loss are right, too") {
  const Loss loss = [](const at::Tensor& x, const at::Tensor& y) {
    return at::huber_loss(x, y, at::Reduction::None).mean() +
           at::smooth_l1_loss(x, y, at::Reduction::None).mean() +
           at::mse_loss(x, y, at::Reduction::None).mean();
  };
  CHECK(traced_against_eager([&] { return descent_with(loss); }) == "");
}

TEST_CASE("an out variant that changes its tensor's shape or memory is not used") {
  for (const NamedMisuse& misuse : misuses()) {
    CAPTURE(misuse.name);
    const auto body = [&](const at::Tensor& x) { return call(misuse.name, x).sin(); };
    check_against_eager(
        body,
        [](int step) {
          return random({3, 5}, step);
        },
        std::string("rondo_trial::") + misuse.name,
        Lowering::Adopting);
  }
}

TEST_CASE("an out variant that does so on the numbers of a step is replaced, and has no effect") {
  for (const NamedMisuse& misuse : misuses()) {
    CAPTURE(misuse.name);
    const std::string name = std::string(misuse.name) + "_at_times";
    const auto body = [&](const at::Tensor& x) { return call(name, x).sin(); };
    check_against_eager(
        body,
        [](int step) {
          return random({3, 5}, step) + 2000;
        },
        "rondo_trial::" + name,
        Lowering::Copying);
  }
}

TEST_CASE("a kernel of rondo's own that changes a tensor's shape or memory fails its trial") {
  const Recorded recorded([](const Batch& batch) { return std::vector{batch["x"].neg()}; },
                          {{"x", at::ones({3, 5})}},
                          {});
  StepProgram program = recorded.program;
  const Instruction& instruction = find(program, "aten::neg");
  const at::Tensor x = random({3, 5}, 1);
  program.slots[0].value = x;
  const std::vector<MakeKernel> makers = negations(kAll);
  for (size_t i = 0; i < makers.size(); ++i) {
    CAPTURE(misuses()[i].name);
    CHECK(probe({"aten::neg", takes_all, makers[i]}, program, instruction) ==
          ProbeOutcome::Differs);
    const KernelsOnly scope;
    const auto memory = memory_for(program);
    const auto kernel = makers[i](program, instruction, *memory);
    Trial trial(instruction, *memory, 0);
    for (int round = 0; round < 2; ++round) {
      CHECK_FALSE(trial.passes(*kernel));
      const SlotId result = instruction.results[0].slots[0];
      CHECK(memory->is_as_planned(result));
      CHECK(equal_bytes(memory->tensor(result), x.neg()));
    }
  }
}

TEST_CASE("an operator is not copied to a slot of another size or dtype") {
  const Recorded recorded([](const Batch& batch) { return std::vector{batch["x"].sum()}; },
                          {{"x", at::ones({3, 5})}},
                          {});
  StepProgram program = recorded.program;
  const Instruction& instruction = find(program, "aten::sum");
  program.slots[0].value = at::ones({3, 5});
  Slot& result = program.slots[static_cast<size_t>(instruction.results[0].slots[0])];
  const auto check_refused = [&] {
    const KernelsOnly scope;
    const auto memory = memory_for(program);
    CHECK_THROWS_AS(CopyingCall(instruction, *memory).run(), CaptureError);
  };
  result.sizes = {4};
  result.strides = {1};
  check_refused();
  result.sizes = result.strides = {};
  result.dtype = at::kDouble;
  check_refused();
}

TEST_CASE("a tensor that a step gives to an operator to write to may be resized by it") {
  const compat::NoWarnings no_warnings;  // LibTorch advises against it
  SUBCASE("of the step, for a loss") {
    const auto body = [](const at::Tensor& x) {
      at::Tensor loss = at::zeros({});
      at::huber_loss_out(loss, x, x * 2);
      return loss.sin();
    };
    check_against_eager(
        body,
        [](int step) {
          return random({32, 128}, step);
        },
        "aten::huber_loss.out",
        Lowering::Copying);
  }
  SUBCASE("of the step, for a result without a place") {
    const auto body = [](const at::Tensor& x) {
      at::Tensor product = at::empty({0});
      at::mul_out(product, x, x);
      return product.sin();
    };
    check_against_eager(
        body,
        [](int step) {
          return random({32, 128}, step);
        },
        "aten::mul.out",
        Lowering::Copying);
  }
  SUBCASE("of the step, and fits") {
    const auto body = [](const at::Tensor& x) {
      at::Tensor product = at::empty({32, 32});
      at::mm_out(product, x, x.t());
      return product.sin();
    };
    check_against_eager(
        body,
        [](int step) {
          return random({32, 128}, step);
        },
        "aten::mm.out",
        Lowering::InPlace);
  }
  SUBCASE("of the state") {
    CHECK(traced_against_eager([] {
            const at::Tensor loss = at::zeros({});
            StepProbe probe;
            probe.state = {{"loss", loss}};
            probe.body = [=](Backend&, const Batch& batch) {
              at::Tensor out = loss;
              at::huber_loss_out(out, batch["x"], batch["x"] * 2);
              return Outputs{{"y", loss + 1}};
            };
            return probe;
          }) == "");
  }
}

TEST_CASE("an operator that resizes what it is given in place cannot be recorded") {
  const std::string message = capture_error([] {
    StepProbe probe;
    probe.body = [](Backend&, const Batch& batch) {
      const at::Tensor y = batch["x"] + 1;
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("rondo_trial::stretch_", "")
          .typed<void(const at::Tensor&)>()
          .call(y);
      return Outputs{{"y", y.sum()}};
    };
    return probe;
  });
  CHECK(message.find("rondo_trial::stretch_") != std::string::npos);
}

TEST_SUITE_END();
