#include <doctest/doctest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "support/step_probe.h"
#include "tracing/make_backend.h"

TEST_SUITE_BEGIN("tracing/recording/refusals");

using namespace rondo;
using namespace rondo::test;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A run under `on_refusal = "eager"`, with what it warned of.
struct LenientRun {
  ProbeRun run;
  std::vector<std::string> warnings;
  std::vector<EagerSteps> eager;

  explicit LenientRun(const std::function<StepProbe()>& make,
                      int steps = 30,
                      const std::string& verify = "first",
                      const std::string& on_nan = "stop") {
    BackendOptions options;
    options.verify = verify;
    options.on_nan = on_nan;
    const auto backend = make_backend(options, TextLog::to([this](LogLevel level, auto message) {
                                        if (level == LogLevel::Warning) {
                                          warnings.emplace_back(message);
                                        }
                                      }));
    run = run_probe(make, *backend, steps);
    eager = backend->eager_steps();
  }
};

/// Checks that a run equals eager, that its training step was refused once, and that the warning
/// has all of `facts`.
LenientRun check_eager(const std::function<StepProbe()>& make,
                       const std::vector<std::string>& facts,
                       int steps = 30) {
  const ProbeRun expected = run_probe(make, *backend_of("eager"), steps);
  LenientRun got(make, steps);
  CHECK(first_difference(expected.bytes, got.run.bytes) == "");
  REQUIRE(got.warnings.size() == 1);
  for (const std::string& fact : facts) {
    CHECK_MESSAGE(has(got.warnings[0], fact), got.warnings[0]);
  }
  REQUIRE(!got.run.reports.empty());
  for (const StepReport& report : got.run.reports) {
    CHECK(report.mode == "eager");
    CHECK(report.stats.replays == 0);
    CHECK(has(got.warnings[0], report.reason));
  }
  REQUIRE(got.eager.size() == 1);
  CHECK(got.eager[0].share_of_time > 0.0);
  CHECK(got.eager[0].share_of_time <= 1.0);
  return got;
}

// The plain step; a hook does something before the loss, with a closure and a host call on either
// side of it.
StepProbe in_hook(const std::function<void(Backend&, const at::Tensor& x)>& hook,
                  const std::shared_ptr<std::vector<std::string>>& calls = nullptr) {
  StepProbe probe = plain_descent();
  const at::Tensor rate = probe.state[2].second;
  const auto body = probe.body;
  const auto note = [calls](const std::string& what) {
    if (calls) {
      calls->push_back(what);
    }
  };
  const auto around = [=](Backend& backend, const at::Tensor& seen, const std::string& name) {
    backend.defer({{seen}, [=](const auto&) { note("closure " + name); }, {}});
    backend.host_call(name, {rate}, [=](const std::vector<at::Tensor>& tensors) {
      tensors[0].mul_(0.99);
      note("call " + name);
    });
  };
  probe.body = [=](Backend& backend, const Batch& batch) {
    around(backend, batch["x"].sum(), "before");
    backend.set_location("Meddler", "on_before_forward");
    hook(backend, batch["x"]);
    backend.set_location("", "");
    Outputs outputs = body(backend, batch);
    around(backend, outputs["loss"], "after");
    return outputs;
  };
  return probe;
}

__attribute__((noinline)) float sum_on_host(const at::Tensor& x) {
  const float sum = x.sum().item<float>();
  CHECK(sum == sum);  // or else the call of item would take this one's place on the stack
  return sum;
}

}  // namespace

TEST_CASE("a step that cannot be recorded trains as it is written, and is warned about once") {
  std::string op;
  std::function<void(const at::Tensor&)> meet;
  SUBCASE("a number read on the host") {
    op = "aten::_local_scalar_dense";
    meet = [](const at::Tensor& x) { x.sum().item<float>(); };
  }
  SUBCASE("a generator of one's own") {
    op = "aten::uniform_";
    meet = [generator = at::detail::createCPUGenerator(3)](const at::Tensor& x) {
      torch::zeros_like(x).uniform_(0, 1, generator);
    };
  }
  SUBCASE("more memory for a tensor") {
    op = "aten::resize_";
    meet = [](const at::Tensor&) { torch::zeros({3}).resize_({30}); };
  }
  SUBCASE("a sparse tensor") {
    op = "aten::";
    meet = [](const at::Tensor& x) { x.to_sparse().mul(2); };
  }
  check_eager([&] { return in_hook([&](Backend&, const at::Tensor& x) { meet(x); }); },
              {"Meddler.on_before_forward", op, "train/update"});
}

TEST_CASE(
    "a refused step runs each closure and each host call once, those before the refusal too") {
  const auto calls_of = [](const std::string& mode) {
    const auto calls = std::make_shared<std::vector<std::string>>();
    const auto make = [=] {
      return in_hook([](Backend&, const at::Tensor& x) { x.sum().item<float>(); }, calls);
    };
    if (mode == "eager") {
      run_probe(make, *backend_of("eager"), 5);
    } else {
      LenientRun run(make, 5);
    }
    return *calls;
  };
  const std::vector<std::string> expected = calls_of("eager");
  CHECK(expected.size() == 20);
  CHECK(calls_of("traced") == expected);
}

TEST_CASE("the body is not recorded any more once it was refused") {
  std::vector<bool> is_capturing;
  const auto make = [&] {
    return in_hook([&](Backend& backend, const at::Tensor& x) {
      is_capturing.push_back(backend.is_capturing());
      x.sum().item<float>();
      is_capturing.push_back(backend.is_capturing());
    });
  };
  LenientRun(make, 2);
  CHECK(is_capturing == std::vector<bool>{true, false, false, false});
}

TEST_CASE("a refusal names the module and the line of code") {
  const auto make = [] {
    StepProbe probe = descent([](const auto& x, const auto& label, const auto& w, const auto& b) {
      const at::Tensor logits = torch::addmm(b, x, w);
      return torch::cross_entropy_loss(logits, label) + sum_on_host(logits);
    });
    probe.state[0].first = "model.head.weight";
    probe.state[1].first = "model.head.bias";
    return probe;
  };
  check_eager(make, {"forward after head", "sum_on_host", "aten::_local_scalar_dense"});
  CHECK(has(capture_error(make), "forward after head"));
  CHECK(has(capture_error(make), "sum_on_host"));
}

TEST_CASE("captures that differ leave a step as it is written") {
  const auto make = [] {
    const auto counter = std::make_shared<double>(0.5);
    return descent([=](const auto& x, const auto& label, const auto& w, const auto& b) {
      *counter += 1;
      return plain_loss(x, label, w, b) * *counter;
    });
  };
  check_eager(make, {"1.5", "2.5", "aten::mul", "two captures"});
}

TEST_CASE("a third capture that differs leaves a step as it is written, beside a replay or not") {
  const auto make = [] {
    const auto steps = std::make_shared<int>(0);
    StepProbe probe = with_momentum(plain_descent());
    probe.body = [=, body = probe.body](Backend& backend, const Batch& batch) {
      Outputs outputs = body(backend, batch);
      outputs.set("extra", ++*steps < 3 ? outputs["loss"] * 2 : outputs["loss"] + 2);
      backend.defer({{outputs["extra"]}, [](const auto&) {}, {}});
      return outputs;
    };
    return probe;
  };
  check_eager(make, {"two captures"});
  const ProbeRun expected = run_probe(make, *backend_of("eager"), 8);
  CHECK(first_difference(expected.bytes, LenientRun(make, 8, "off").run.bytes) == "");
}

TEST_CASE("state that moves after every capture leaves a step as it is written") {
  const auto make = [] {
    StepProbe probe = plain_descent();
    const at::Tensor w = probe.state[0].second;
    probe.batch = [=](int step) {
      if (step % 2 == 0) {
        w.set_data(w.data().clone());
      }
      return random_batch(step);
    };
    return probe;
  };
  check_eager(make, {"never settles", "\"w\""});
}

TEST_CASE("a first replay that differs is undone: the step as written is kept, its closures too") {
  const auto make = [] {
    const auto steps = std::make_shared<int>(0);
    StepProbe probe = descent([=](const auto& x, const auto& label, const auto& w, const auto& b) {
      return plain_loss(x, label, w, b) * (++*steps < 3 ? 1.0 : 2.0) + torch::rand({});
    });
    probe.body = [=, body = probe.body](Backend& backend, const Batch& batch) {
      Outputs outputs = body(backend, batch);
      backend.defer({{outputs["loss"]}, [](const auto&) {}, {}});
      return outputs;
    };
    return probe;
  };
  check_eager(make, {"its replay differs", "\"w\"", "aten::sub_"});
}

TEST_CASE("a later replay that differs is an error: updates before it may be wrong") {
  const auto make = [] {
    const auto steps = std::make_shared<int>(0);
    return descent([=](const auto& x, const auto& label, const auto& w, const auto& b) {
      return plain_loss(x, label, w, b) * (++*steps < 4 ? 1.0 : 2.0);
    });
  };
  CHECK_THROWS_AS(LenientRun(make, 8, "3"), CaptureError);
}

TEST_CASE("a first replay that makes other host calls is undone, and each call is made once") {
  const auto calls = std::make_shared<int>(0);
  const auto make = [=] {
    *calls = 0;
    const auto steps = std::make_shared<int>(0);
    StepProbe probe = plain_descent();
    const at::Tensor rate = probe.state[2].second;
    probe.body = [=, body = probe.body](Backend& backend, const Batch& batch) {
      const int count = ++*steps < 3 ? 1 : 2;
      for (int i = 0; i < count; ++i) {
        backend.host_call("schedule", {rate}, [=](const std::vector<at::Tensor>& tensors) {
          ++*calls;
          tensors[0].mul_(0.9);
        });
      }
      return body(backend, batch);
    };
    return probe;
  };
  check_eager(make, {"host calls"}, 8);
  CHECK(*calls == 2 + 2 * 6);
}

TEST_CASE("a first replay that throws is undone, and the step runs as it is written") {
  const auto make = [] {
    const auto steps = std::make_shared<int>(0);
    StepProbe probe = plain_descent();
    probe.batch = [](int step) {
      Batch batch = random_batch(step);
      batch.set("row", torch::full({2}, step < 2 ? 1 : 100, at::kLong));
      return batch;
    };
    probe.body = [=, body = probe.body](Backend& backend, const Batch& batch) {
      Outputs outputs = body(backend, batch);
      const at::Tensor table = outputs["loss"].detach().expand({4, 1}).contiguous();
      outputs.set("row", ++*steps < 3 ? torch::embedding(table, batch["row"]) : table);
      return outputs;
    };
    return probe;
  };
  check_eager(make, {"train/update", "its replay failed", "aten::embedding"});
}

TEST_CASE("more shapes of batches than are recorded run as they are written") {
  const auto make = [] {
    StepProbe probe = plain_descent();
    probe.batch = [](int step) { return random_batch(step, step % 70 + 1); };
    return probe;
  };
  const ProbeRun expected = run_probe(make, *backend_of("eager"), 220);
  const LenientRun got(make, 220);
  CHECK(first_difference(expected.bytes, got.run.bytes) == "");
  CHECK(got.run.replays() > 0);
  REQUIRE(got.warnings.size() == 1);
  CHECK(has(got.warnings[0], "64"));
  CHECK(has(got.warnings[0], "drop_last"));
  REQUIRE(got.eager.size() == 1);
  CHECK(got.eager[0].runs == 6 * 3);
}

TEST_CASE("what a body throws after its step was refused comes out as it is") {
  const auto make = [] {
    return in_hook([](Backend&, const at::Tensor& x) {
      x.sum().item<float>();
      throw std::out_of_range("mine");
    });
  };
  CHECK_THROWS_AS(LenientRun(make, 1), std::out_of_range);
}

TEST_CASE("a NaN in a step that runs as it is written is said to have no operator to name") {
  BackendOptions options;
  options.on_nan = "explain";
  const auto backend = make_backend(options, TextLog::to([](LogLevel, std::string_view) {}));
  run_probe([] { return in_hook([](Backend&, const at::Tensor& x) { x.sum().item<float>(); }); },
            *backend,
            3);
  const std::string text = backend->explain_non_finite();
  CHECK_MESSAGE(has(text, "ran as they are written"), text);
}

TEST_CASE("refused steps are told of after they were invalidated, in one row") {
  const auto backend =
      make_backend(BackendOptions(), TextLog::to([](LogLevel, std::string_view) {}));
  const auto make = [] {
    return in_hook([](Backend&, const at::Tensor& x) { x.sum().item<float>(); });
  };
  run_probe(make, *backend, 4);
  backend->invalidate("a test");
  run_probe(make, *backend, 4);
  REQUIRE(backend->eager_steps().size() == 1);
  CHECK(backend->eager_steps()[0].runs == 6);
  CHECK(backend->is_settled());
}

TEST_CASE("an unknown word for on_refusal is an error") {
  BackendOptions options;
  options.on_refusal = "ignore";
  CHECK_THROWS_AS(make_backend(options), UsageError);
}

TEST_SUITE_END();
