#include "tracing/checks/nan_hunt.h"

#include <doctest/doctest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <string>

#include "core/error.h"
#include "support/step_probe.h"
#include "tracing/make_backend.h"

TEST_SUITE_BEGIN("tracing/checks/nan_hunt");

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr int kSteps = 8;

std::unique_ptr<Backend> explaining_backend() {
  BackendOptions options;
  options.on_nan = "explain";
  return make_backend(options, TextLog::to([](LogLevel, std::string_view) {}));
}

// Positive numbers; from step `bad` on, what `spoil` makes of them.
std::function<Batch(int)> batches(int bad, const std::function<void(at::Tensor&)>& spoil) {
  return [=](int step) {
    const Batch random = random_batch(step);
    at::Tensor x = random["x"].abs() + 0.5;
    if (step >= bad) {
      spoil(x);
    }
    return Batch{{"x", x}, {"label", random["label"]}};
  };
}

// What the backend tells after a run of the probe, or in it, when it sees a bad state first.
std::string explanation(const StepProbe& made, int steps = kSteps) {
  const auto backend = explaining_backend();
  try {
    run_probe([&] { return made; }, *backend, steps);
  } catch (const NonFiniteLossError& error) {
    return error.what();
  }
  return backend->explain_non_finite();
}

bool tells(const std::string& text, const std::string& fact) {
  return text.find(fact) != std::string::npos;
}

}  // namespace

TEST_CASE("the logarithm of a negative number is named, with what it got") {
  for (const int bad : {0, 1, 4, 7}) {  // 0 and 1 are steps that are captured
    StepProbe probe = descent([](const auto& x, const auto&, const auto& w, const auto& b) {
      return x.log().mm(w).add(b).square().mean();
    });
    probe.batch = batches(bad, [](at::Tensor& x) { x[0][0] = -2.5; });
    const std::string text = explanation(probe, bad + 1);
    CHECK_MESSAGE(tells(text, "first bad operator: aten::log"), text);
    CHECK_MESSAGE(tells(text, "forward"), text);
    CHECK_MESSAGE(tells(text, "min -2.5"), text);
    CHECK_MESSAGE(tells(text, "self (x): Float[8, 6]"), text);
    CHECK_MESSAGE(tells(text, "1 NaN"), text);
    CHECK_MESSAGE(tells(text, "reached the loss"), text);
    CHECK_MESSAGE(tells(text, "in the last step"), text);
  }
}

TEST_CASE("a step that writes its batch is run again on what it got") {
  for (const int bad : {0, 1, 4, 7}) {
    StepProbe probe = descent([](const auto& x, const auto&, const auto& w, const auto& b) {
      return x.log_().mm(w).add(b).square().mean();
    });
    probe.batch = batches(bad, [](at::Tensor& x) { x[0][0] = -2.5; });
    const std::string text = explanation(probe, bad + 1);
    CHECK_MESSAGE(tells(text, "first bad operator: aten::log_"), text);
    CHECK_MESSAGE(tells(text, "min -2.5"), text);
  }
}

TEST_CASE("a division by zero in backward is named, though the loss turns bad one step later") {
  StepProbe probe = descent([](const auto& x, const auto&, const auto& w, const auto& b) {
    return (x.mm(w).square().sum().sqrt() + b.square().sum()).mul(0.01);
  });
  probe.batch = batches(6, [](at::Tensor& x) { x.zero_(); });
  const std::string text = explanation(probe);
  CHECK_MESSAGE(tells(text, "SqrtBackward0"), text);
  CHECK_MESSAGE(tells(text, "aten::div"), text);
  CHECK_MESSAGE(tells(text, "became NaN in"), text);
  CHECK_MESSAGE(tells(text, "reached w"), text);
}

TEST_CASE("an overflow in the update is named") {
  StepProbe probe = descent([](const auto& x, const auto&, const auto& w, const auto& b) {
    return x.mm(w).add(b).mean();
  });
  const at::Tensor lr = probe.state[2].second;
  probe.body = [body = probe.body, lr](Backend& backend, const Batch& batch) {
    Outputs outputs = body(backend, batch);
    const torch::NoGradGuard no_grad;
    lr.mul_(1e30);
    return outputs;
  };
  const std::string text = explanation(probe);
  CHECK_MESSAGE(tells(text, "update"), text);
  CHECK_MESSAGE(tells(text, "aten::mul"), text);
}

TEST_CASE("infinities that a mask asks for are not blamed, unless they become a NaN") {
  for (const bool masks_all : {false, true}) {
    StepProbe probe = descent([](const auto& x, const auto&, const auto& w, const auto& b) {
      const at::Tensor scores = x.mm(w) + b;
      return scores.masked_fill(x.narrow(1, 0, 3) > 1.0, -INFINITY).softmax(1).mul(scores).mean();
    });
    probe.batch = batches(4, [=](at::Tensor& x) {
      if (masks_all) {
        x[3].fill_(5.0);
      } else {
        x[3][5] = INFINITY;
      }
    });
    const auto of_batch = probe.batch;
    probe.batch = [of_batch](int step) {
      Batch batch = of_batch(step);
      at::Tensor x = batch["x"].clone();
      if (step < 4) {
        x.select(1, 0).fill_(0.5);  // never a whole row
      } else {
        x.slice(0, 0, 3).select(1, 0).fill_(0.5);
        x.slice(0, 4).select(1, 0).fill_(0.5);
      }
      return Batch{{"x", x}, {"label", batch["label"]}};
    };
    const std::string text = explanation(probe);
    CHECK_MESSAGE(tells(text, masks_all ? "aten::_softmax" : "came with the batch, in \"x\""),
                  text);
    CHECK_FALSE(tells(text, "first bad operator: aten::masked_fill"));
  }
}

TEST_CASE("steps with random numbers are run again with the same ones") {
  StepProbe probe = descent([](const auto& x, const auto&, const auto& w, const auto& b) {
    return at::dropout(x, 0.5, true).mm(w).add(b).square().mean();
  });
  probe.batch = batches(5, [](at::Tensor& x) { x.fill_(3e38); });
  const std::string text = explanation(probe);
  CHECK_MESSAGE(tells(text, "first bad operator"), text);
}

TEST_CASE("host calls answer as they did") {
  StepProbe probe = descent([](const auto& x, const auto&, const auto& w, const auto& b) {
    return x.mm(w).add(b).square().mean();
  });
  const at::Tensor lr = probe.state[2].second;
  const auto calls = std::make_shared<int>(0);
  probe.body = [body = probe.body, lr, calls](Backend& backend, const Batch& batch) {
    Outputs outputs = body(backend, batch);
    backend.host_call("schedule", {lr}, [calls](const std::vector<at::Tensor>& tensors) {
      tensors[0].fill_(++*calls == 5 ? 1e300 : 1e-3);
    });
    return outputs;
  };
  const std::string text = explanation(probe);
  CHECK_MESSAGE(tells(text, "aten::mul"), text);
  CHECK_MESSAGE(tells(text, "update"), text);
  CHECK(*calls <= kSteps);  // explaining made none
}

TEST_CASE("explaining leaves state and random numbers as they were") {
  const auto backend = explaining_backend();
  StepProbe probe;
  const ProbeRun run = run_probe(
      [&] {
        probe = descent([](const auto& x, const auto&, const auto& w, const auto& b) {
          return at::dropout(x.log(), 0.5, true).mm(w).add(b).square().mean();
        });
        probe.batch = batches(kSteps - 1, [](at::Tensor& x) { x.neg_(); });
        return probe;
      },
      *backend,
      kSteps);
  CHECK(!backend->explain_non_finite().empty());
  StateDict after;
  for (const auto& [name, tensor] : probe.state) {
    CHECK(equal_bytes(run.bytes.at(name).as_tensor(), tensor.detach()));
  }
  CHECK(backend->explain_non_finite().empty());  // nothing is kept any more
}

TEST_CASE("what the last training step spoiled is told before anything else may touch the state") {
  StepProbe probe = descent([](const auto& x, const auto&, const auto& w, const auto& b) {
    return (x.mm(w).square().sum().sqrt() + b.square().sum()).mul(0.01);
  });
  probe.batch = batches(5, [](at::Tensor& x) { x.zero_(); });  // a finite loss, a bad gradient
  SUBCASE("a step that is not of training") {
    probe.key = [](int step) { return StepKey{step < 6 ? "train" : "validate", {}, "fp32"}; };
    const std::string text = explanation(probe, 7);
    CHECK_MESSAGE(tells(text, "\"w\" of the state"), text);
    CHECK_MESSAGE(tells(text, "first bad operator: aten::div"), text);
    CHECK_MESSAGE(tells(text, "in the last step"), text);
  }
  const auto after_training = [&](const std::function<void(Backend&)>& work) {
    const auto backend = explaining_backend();
    run_probe([&] { return probe; }, *backend, 6);
    backend->set_state([&] { return probe.state; });
    try {
      work(*backend);
    } catch (const NonFiniteLossError& error) {
      work(*backend);  // told once
      return std::string(error.what());
    }
    return std::string();
  };
  SUBCASE("steps that are captured anew") {
    const std::string text =
        after_training([](Backend& backend) { backend.invalidate("the moon rose"); });
    CHECK_MESSAGE(tells(text, "first bad operator: aten::div"), text);
  }
  SUBCASE("a look at the state") {
    const std::string text = after_training([](Backend& backend) { backend.check_state(); });
    CHECK_MESSAGE(tells(text, "first bad operator: aten::div"), text);
  }
}

TEST_CASE("only a backend that was asked to keeps anything") {
  const auto backend = backend_of("traced");
  run_probe(
      [] {
        return descent([](const auto& x, const auto&, const auto& w, const auto& b) {
          return x.mm(w).add(b).log().mean();
        });
      },
      *backend,
      kSteps);
  CHECK(backend->explain_non_finite().empty());
  CHECK_NOTHROW(backend->check_state());
  BackendOptions eager;
  eager.mode = "eager";
  eager.on_nan = "explain";
  CHECK_THROWS_AS(make_backend(eager), UsageError);
}

TEST_SUITE_END();
