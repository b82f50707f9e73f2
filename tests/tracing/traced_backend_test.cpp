#include "tracing/traced_backend.h"

#include <ATen/Context.h>
#include <doctest/doctest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "support/step_probe.h"
#include "tracing/make_backend.h"
#include "tracing/passes/passes.h"

TEST_SUITE_BEGIN("tracing/traced_backend");

using namespace rondo;
using namespace rondo::test;

namespace {

// Before step 5 the host gives `w` other memory.
std::function<Batch(int)> batches_that_move(const at::Tensor& w) {
  return [w](int step) {
    if (step == 5) {
      w.set_data(w.data().clone());
    }
    return random_batch(step);
  };
}

}  // namespace

TEST_CASE("a batch of another structure is a step of its own") {
  const auto make = [] {
    StepProbe probe = plain_descent();
    probe.batch = [](int step) { return random_batch(step, step % 4 == 3 ? 5 : 8); };
    return probe;
  };
  CHECK(traced_against_eager(make, 16, 4) == "");
}

TEST_CASE("inputs that share memory are told from those that do not") {
  const auto make = [] {
    StepProbe probe;
    probe.batch = [](int step) {
      const at::Tensor x = random_batch(step)["x"];
      return step % 2 == 0 ? Batch{{"a", x}, {"b", x}} : Batch{{"a", x}, {"b", x + 1}};
    };
    probe.body = [](Backend&, const Batch& batch) {
      return Outputs{{"sum", (batch["a"] * batch["b"]).sum()}};
    };
    return probe;
  };
  CHECK(traced_against_eager(make, 12, 4) == "");
}

TEST_CASE("different keys are different steps") {
  const auto make = [] {
    StepProbe probe = plain_descent();
    probe.key = [](int step) { return StepKey{"train", {}, step % 2 == 0 ? "fp32" : "bf16"}; };
    return probe;
  };
  CHECK(traced_against_eager(make, 10, 4) == "");
}

TEST_CASE("reports say which arenas were in use when a step was new, until all steps are settled") {
  const auto backend = backend_of("traced");
  StepProbe probe = plain_descent();
  backend->set_state([&] { return probe.state; });
  ClosureQueue queue;
  int step = 0;
  const auto run = [&](int64_t rows, int times) {
    for (int i = 0; i < times; ++i) {
      backend->run(
          {"train", {}, "fp32"},
          random_batch(step++, rows),
          [&](const Batch& batch) { return probe.body(*backend, batch); },
          IsDue(),
          queue);
    }
  };
  const auto memory = [&](size_t of) { return backend->reports().at(of).memory; };
  CHECK(backend->is_settled());
  run(16, 3);
  CHECK_FALSE(backend->is_settled());
  run(16, 1);
  CHECK(backend->is_settled());
  const int64_t one = memory(0).arena;
  CHECK(memory(0).arenas_at_capture == 0);
  CHECK(memory(0).arenas_at_first == one);
  run(8, 3);
  CHECK_FALSE(backend->is_settled());
  run(8, 1);
  CHECK(backend->is_settled());
  const int64_t both = one + memory(1).arena;
  CHECK(memory(1).arena > 0);
  CHECK(memory(1).arenas_at_capture == one);
  CHECK(memory(1).arenas_at_first == both);
  run(16, 1);
  CHECK(memory(0).arenas_at_first == one);
  CHECK(memory(0).arenas_at_trial == 0);  // all kernels were compared before the first replay
  backend->invalidate("the moon rose");
  CHECK(backend->is_settled());
}

TEST_CASE("after an invalidation every step is captured anew") {
  const auto backend = backend_of("traced");
  int body_runs = 0;
  double scale = 1.0;
  StepProbe probe = plain_descent();
  const auto body = probe.body;
  const StepBody counted = [&](const Batch& batch) {
    ++body_runs;
    Outputs outputs = body(*backend, batch);
    outputs.set("scaled", outputs["loss"].detach() * scale);
    return outputs;
  };
  backend->set_state([&] { return probe.state; });
  ClosureQueue queue;
  for (int step = 0; step < 4; ++step) {
    backend->run({"train", {}, "fp32"}, random_batch(step), counted, IsDue(), queue);
  }
  CHECK(body_runs == 3);  // two captures and a verification
  scale = 2.0;
  backend->invalidate("the scale changed");
  Outputs last;
  for (int step = 4; step < 8; ++step) {
    last = backend->run({"train", {}, "fp32"}, random_batch(step), counted, IsDue(), queue);
  }
  CHECK(body_runs == 6);
  CHECK(last["scaled"].item<float>() == 2 * last["loss"].item<float>());
  const auto reports = backend->reports();
  REQUIRE(reports.size() == 2);
  CHECK(reports[0].name == "train_update.0");
  CHECK(reports[1].name == "train_update.1");
}

TEST_CASE("another fingerprint is captured anew, and one that comes back is replayed again") {
  const auto backend = backend_of("traced", "off");
  int body_runs = 0;
  double scale = 1.0;
  uint64_t fingerprint = 1;
  StepProbe probe = plain_descent();
  const StepBody scaled = [&](const Batch& batch) {
    ++body_runs;
    Outputs outputs = probe.body(*backend, batch);
    outputs.set("scaled", outputs["loss"].detach() * scale);
    return outputs;
  };
  backend->set_state([&] { return probe.state; });
  backend->set_fingerprint([&] { return fingerprint; });
  ClosureQueue queue;
  int step = 0;
  const auto run = [&](uint64_t under, int times) {
    fingerprint = under;
    scale = static_cast<double>(under);
    const int before = body_runs;
    for (int i = 0; i < times; ++i) {
      const Outputs& outputs =
          backend->run({"train", {}, "fp32"}, random_batch(step++), scaled, IsDue(), queue);
      CHECK(outputs["scaled"].item<float>() ==
            static_cast<float>(under) * outputs["loss"].item<float>());
    }
    return body_runs - before;
  };
  CHECK(run(1, 4) == 2);
  CHECK(run(2, 4) == 2);
  CHECK(run(1, 4) == 0);
  CHECK(run(2, 4) == 0);
  CHECK(run(3, 1) == 1);  // changed back before it was captured twice
  CHECK(run(1, 2) == 0);
  CHECK(run(3, 2) == 1);
  SUBCASE("of many the one that was used the longest ago is forgotten") {
    for (uint64_t other = 4; other < 40; ++other) {
      run(other, 3);
      CHECK(run(1, 1) == 0);
    }
    CHECK(backend->reports().size() <= 64);
    CHECK(run(2, 3) == 2);
  }
  SUBCASE("a global switch of LibTorch is a part of it") {
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
    const int under_switch = run(1, 4);
    at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false);
    CHECK(under_switch == 2);
    CHECK(run(1, 2) == 0);
  }
}

TEST_CASE("a step whose fingerprint is another one each time runs as it is written") {
  BackendOptions options;
  std::vector<std::string> warnings;
  const auto backend =
      make_backend(options, TextLog::to([&](LogLevel level, std::string_view text) {
                     if (level == LogLevel::Warning) {
                       warnings.emplace_back(text);
                     }
                   }));
  StepProbe probe = plain_descent();
  uint64_t fingerprint = 0;
  backend->set_state([&] { return probe.state; });
  backend->set_fingerprint([&] { return fingerprint; });
  ClosureQueue queue;
  for (int step = 0; step < 30; ++step) {
    fingerprint = static_cast<uint64_t>(step);
    backend->run(
        {"train", {}, "fp32"},
        random_batch(step),
        [&](const Batch& batch) { return probe.body(*backend, batch); },
        IsDue(),
        queue);
  }
  const std::vector<EagerSteps> eager = backend->eager_steps();
  REQUIRE(eager.size() == 1);
  CHECK(eager[0].runs == 30 - 8);
  CHECK(eager[0].reason.find("train/update") != std::string::npos);
  CHECK(eager[0].reason.find("modes of modules") != std::string::npos);
  CHECK(warnings.size() == 1);
}

TEST_CASE("state that moves to other memory starts the captures anew") {
  const auto make = [] {
    StepProbe probe = plain_descent();
    probe.batch = batches_that_move(probe.state[0].second);
    return probe;
  };
  CHECK(traced_against_eager(make, 12, 4) == "");
}

TEST_CASE("state that moves to another place in its storage starts the captures anew") {
  const auto make = [] {
    StepProbe probe = plain_descent();
    const at::Tensor w = probe.state[0].second;
    const at::Tensor both = torch::randn({2, 6, 3});
    w.set_data(both[0]);
    probe.batch = [=](int step) {
      if (step == 5) {
        w.set_data(both[1]);
      }
      return random_batch(step);
    };
    return probe;
  };
  CHECK(traced_against_eager(make, 12, 4) == "");
}

TEST_CASE("a step that was captured anew is verified anew") {
  const std::string message = capture_error(
      [] {
        auto factor = std::make_shared<double>(1.0);
        StepProbe probe =
            descent([=](const at::Tensor& x,
                        const at::Tensor& label,
                        const at::Tensor& w,
                        const at::Tensor& b) { return plain_loss(x, label, w, b) * *factor; });
        probe.batch = [=, batch = batches_that_move(probe.state[0].second)](int step) {
          *factor = step < 7 ? 1.0 : 2.0;  // 5 and 6 are captures
          return batch(step);
        };
        return probe;
      },
      8);
  CHECK(message != "");
}

TEST_CASE("state that moves after every capture is an error that names it") {
  const std::string message = capture_error(
      [] {
        StepProbe probe = plain_descent();
        const at::Tensor w = probe.state[0].second;
        probe.batch = [=](int step) {
          if (step % 2 == 0) {
            w.set_data(w.data().clone());
          }
          return random_batch(step);
        };
        return probe;
      },
      20);
  CHECK(message.find("\"w\"") != std::string::npos);
}

TEST_CASE("keys without end are an error with advice") {
  const std::string message = capture_error(
      [] {
        StepProbe probe = plain_descent();
        probe.batch = [](int step) { return random_batch(step, step + 1); };
        return probe;
      },
      80);
  CHECK(message.find("drop_last") != std::string::npos);
}

TEST_CASE("steps that are thrown away before they are replayed are warned about") {
  std::vector<std::string> warnings;
  const auto log = TextLog::to([&](LogLevel level, std::string_view message) {
    if (level == LogLevel::Warning) {
      warnings.emplace_back(message);
    }
  });
  const auto backend = make_backend(BackendOptions(), log);
  const StepBody nothing = [](const Batch&) { return Outputs(); };
  ClosureQueue queue;
  for (int i = 0; i < 12; ++i) {
    backend->run({"train", {}, "fp32"}, {}, nothing, IsDue(), queue);
    backend->invalidate("the moon rose");
  }
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("the moon rose") != std::string::npos);
}

TEST_CASE("two traced backends in one process do not meet") {
  const auto first = backend_of("traced");
  const auto second = backend_of("traced");
  ClosureQueue queue;
  const auto run = [&](Backend& backend, StepProbe& probe, int step) {
    return backend
        .run(
            {"train", {}, "fp32"},
            random_batch(step),
            [&](const Batch& batch) { return probe.body(backend, batch); },
            IsDue(),
            queue)["loss"]
        .clone();
  };
  torch::manual_seed(3);
  StepProbe a = plain_descent();
  torch::manual_seed(3);
  StepProbe b = plain_descent();
  first->set_state([&] { return a.state; });
  second->set_state([&] { return b.state; });
  for (int step = 0; step < 8; ++step) {
    const at::Tensor loss = run(*first, a, step);
    CHECK(equal_bytes(loss, run(*second, b, step)));
  }
}

TEST_CASE("a report holds the program, the graph, and what they cost") {
  const auto backend = backend_of("traced");
  const ProbeRun run = run_probe(&plain_descent, *backend, 5);
  REQUIRE(run.reports.size() == 1);
  const StepReport& report = run.reports[0];
  CHECK(report.name == "train_update.0");
  CHECK(report.program.find("aten::addmm") != std::string::npos);
  CHECK(report.graph.find("aten::addmm") != std::string::npos);
  CHECK(report.stats.replays == 3);
  CHECK(report.stats.captured_bytes == (6 * 3 + 3) * 4 + 8);
  CHECK(report.stats.operators_replayed < report.stats.operators_recorded);
  CHECK(report.stats.capture_s > 0);
  CHECK(report.stats.build_s > 0);
  CHECK(report.stats.verify_s > 0);
}

TEST_CASE("the backend knows whether it is in a step, and whether it captures") {
  const auto backend = backend_of("traced");
  ClosureQueue queue;
  const StepBody body = [&](const Batch&) {
    CHECK(backend->is_in_step());
    CHECK(backend->is_capturing());
    CHECK_THROWS_AS(backend->run({}, {}, StepBody(), IsDue(), queue), UsageError);
    CHECK_THROWS_AS(backend->invalidate("now"), UsageError);
    return Outputs();
  };
  backend->run({"train", {}, "fp32"}, {}, body, IsDue(), queue);
  CHECK_FALSE(backend->is_in_step());
  CHECK_FALSE(backend->is_capturing());
  CHECK_THROWS_AS(backend->defer({}), UsageError);
  CHECK_THROWS_AS(backend->host_call("f", {}, HostFunction()), UsageError);
}

TEST_CASE("a body that throws its own error is left as it is, and can be captured later") {
  const auto backend = backend_of("traced");
  ClosureQueue queue;
  bool is_broken = true;
  const StepBody body = [&](const Batch& batch) {
    if (is_broken) {
      throw std::out_of_range("mine");
    }
    return Outputs{{"y", batch["x"] * 2}};
  };
  CHECK_THROWS_AS(backend->run({"train", {}, "fp32"}, random_batch(0), body, IsDue(), queue),
                  std::out_of_range);
  is_broken = false;
  for (int step = 0; step < 4; ++step) {
    const Outputs outputs =
        backend->run({"train", {}, "fp32"}, random_batch(step), body, IsDue(), queue);
    CHECK(equal_bytes(outputs["y"], random_batch(step)["x"] * 2));
  }
}

TEST_CASE("a pass that does not exist is an error with a suggestion; none changes the bytes") {
  BackendOptions options;
  options.without_passes = {"dead_cod"};
  CHECK_THROWS_WITH_AS(make_backend(options), doctest::Contains("dead_code"), UsageError);
  const auto run = [](std::vector<std::string> without) {
    BackendOptions all;
    all.without_passes = std::move(without);
    const auto backend = make_backend(all, TextLog(LogLevel::Error));
    return run_probe(plain_descent, *backend, 6).bytes;
  };
  const StateDict expected = run({});
  for (const Pass& pass : clean_up_passes()) {
    CAPTURE(std::string(pass.name));
    CHECK(first_difference(expected, run({pass.name})) == "");
  }
}

TEST_CASE("a step that need not be exact ends near the exact one") {
  const auto run = [](bool exact) {
    BackendOptions options;
    options.exact = exact;
    const auto backend = make_backend(options, TextLog(LogLevel::Error));
    return run_probe(plain_descent, *backend, 8).bytes;
  };
  const StateDict exact = run(true);
  const StateDict fast = run(false);
  for (const StateDict::Item& item : exact.items()) {
    const at::Tensor* expected = std::get_if<at::Tensor>(&item.second.variant());
    const at::Tensor* got = std::get_if<at::Tensor>(&fast.find(item.first)->variant());
    if (expected != nullptr && expected->is_floating_point()) {
      CHECK(at::allclose(*got, *expected, 1e-4, 1e-6));
    }
  }
}

TEST_SUITE_END();
