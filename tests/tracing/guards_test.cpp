#include <doctest/doctest.h>
#include <torch/nn.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/generator_state.h"
#include "core/error.h"
#include "support/contains.h"
#include "support/step_probe.h"
#include "tracing/exported_step.h"
#include "tracing/make_backend.h"
#include "tracing/program/guards.h"
#include "tracing/recording/capture.h"
#include "tracing/traced_backend.h"

TEST_SUITE_BEGIN("tracing/guards");

using namespace rondo;
using namespace rondo::test;
namespace F = torch::nn::functional;

namespace {

constexpr int kSteps = 30;

std::unique_ptr<Backend> lenient_backend(std::vector<std::string>* warnings,
                                         const std::string& executor = "plan") {
  BackendOptions options;
  options.executor = executor;
  return make_backend(options, TextLog::to([warnings](LogLevel level, std::string_view message) {
                        if (level == LogLevel::Warning) {
                          warnings->emplace_back(message);
                        }
                      }));
}

/// What a traced run of a probe that equals eager was.
struct EqualRun {
  std::vector<StepReport> reports;
  std::vector<std::string> warnings;
  int64_t replays = 0;
  int64_t undone = 0;

  explicit EqualRun(const std::function<StepProbe()>& make,
                    int steps = kSteps,
                    const std::string& executor = "plan") {
    const ProbeRun expected = run_probe(make, *backend_of("eager"), steps);
    const ProbeRun got = run_probe(make, *lenient_backend(&warnings, executor), steps);
    CHECK(first_difference(expected.bytes, got.bytes) == "");
    reports = got.reports;
    replays = got.replays();
    for (const StepReport& report : reports) {
      undone += report.stats.undone;
    }
  }
};

EqualRun check_traced(const std::function<StepProbe()>& make) {
  EqualRun run(make);
  REQUIRE(run.reports.size() == 1);
  CHECK(run.reports[0].mode == "traced");
  CHECK(run.replays == kSteps - 2);
  CHECK(run.warnings.empty());
  return run;
}

EqualRun check_guarded(const std::function<StepProbe()>& make, size_t variants) {
  EqualRun run(make);
  CHECK(run.reports.size() == variants);
  for (const StepReport& report : run.reports) {
    CHECK(report.mode == "guarded");
    CHECK(!report.guards.empty());
    CHECK(report.stats.replays > 0);
  }
  CHECK(run.warnings.empty());
  CHECK(run.replays == kSteps - 2 * static_cast<int64_t>(variants));
  return run;
}

EqualRun check_eager(const std::function<StepProbe()>& make,
                     const std::vector<std::string>& facts,
                     const std::string& executor = "plan") {
  EqualRun run(make, kSteps, executor);
  REQUIRE(run.reports.size() == 1);
  CHECK(run.reports[0].mode == "eager");
  REQUIRE(run.warnings.size() == 1);
  for (const std::string& fact : facts) {
    CHECK_MESSAGE(contains(run.warnings[0], fact), run.warnings[0]);
  }
  return run;
}

/// Trains a module under plain gradient descent.
template <class Module>
StepProbe training(Module module,
                   std::function<at::Tensor(Module&, const at::Tensor&, const at::Tensor&)> loss) {
  const at::Tensor lr = torch::full({}, 0.05, at::kDouble);
  StepProbe probe;
  probe.state = {{"lr", lr}};
  for (const auto& parameter : module->named_parameters()) {
    probe.state.emplace_back("model." + parameter.key(), parameter.value());
  }
  for (const auto& buffer : module->named_buffers()) {
    probe.state.emplace_back("model." + buffer.key(), buffer.value());
  }
  probe.body = [=](Backend&, const Batch& batch) mutable {
    for (const at::Tensor& parameter : module->parameters()) {
      parameter.mutable_grad().reset();
    }
    const at::Tensor value = loss(module, batch["x"], batch["label"]);
    value.backward();
    descend(module->parameters(), lr);
    return Outputs{{"loss", value}};
  };
  return probe;
}

/// The plain descent, whose loss is scaled by what `factor` makes of the batch.
StepProbe scaled_by(const std::function<at::Tensor(const at::Tensor& x)>& factor) {
  return descent([=](const auto& x, const auto& label, const auto& w, const auto& b) {
    return plain_loss(x, label, w, b) * factor(x);
  });
}

/// Batches whose first number of x is positive in the steps for which `is_positive`.
StepProbe with_signs(StepProbe probe, const std::function<bool(int)>& is_positive) {
  probe.batch = [=](int step) {
    Batch batch = random_batch(step);
    batch["x"][0][0] = is_positive(step) ? 1.0 : -1.0;
    return batch;
  };
  return probe;
}

__attribute__((noinline)) bool first_is_positive(const at::Tensor& x) {
  const bool answer = (x[0][0] > 0).item<bool>();
  CHECK((answer || !answer));  // or else the call of item would take this one's place on the stack
  return answer;
}

bool every_third(int step) {
  return step % 3 == 2;
}

}  // namespace

TEST_CASE("a transformer is guarded by whether its query is its key, with masks and without") {
  bool has_masks = false;
  SUBCASE("without masks") {
    has_masks = false;
  }
  SUBCASE("with masks") {
    has_masks = true;
  }
  const auto make = [=] {
    const torch::nn::Transformer model(torch::nn::TransformerOptions(6, 2)
                                           .num_encoder_layers(1)
                                           .num_decoder_layers(1)
                                           .dim_feedforward(8)
                                           .dropout(0.1));
    return training<torch::nn::Transformer>(
        model, [=](auto& net, const at::Tensor& x, const at::Tensor&) {
          const at::Tensor source = x.view({4, 2, 6});
          const at::Tensor target = source.flip(0);
          if (!has_masks) {
            return net->forward(source, target).square().mean();
          }
          const at::Tensor causal =
              torch::full({4, 4}, -1e9).triu(1);  // of the host's generate_square_subsequent_mask
          const at::Tensor padding = x.view({4, 2, 6}).select(2, 0).t().gt(1.5);
          return net->forward(source, target, causal, causal, causal, padding, padding, padding)
              .square()
              .mean();
        });
  };
  const EqualRun run = check_guarded(make, 1);
  REQUIRE(run.reports.size() == 1);
  CHECK(contains(run.reports[0].guards[0].read, "aten::equal"));
  CHECK(run.reports[0].guards[0].answer == "false");
  CHECK(run.undone == 0);
}

TEST_CASE("attention of a tensor to itself is traced, to another one guarded") {
  const auto make = [](bool is_cross) {
    return [=] {
      return training<torch::nn::MultiheadAttention>(
          torch::nn::MultiheadAttention(6, 2),
          [=](auto& attention, const at::Tensor& x, const at::Tensor&) {
            const at::Tensor query = x.view({4, 2, 6});
            const at::Tensor key = is_cross ? query * 2 : query;
            return std::get<0>(attention->forward(query, key, key)).square().mean();
          });
    };
  };
  check_traced(make(false));
  check_guarded(make(true), 1);
}

TEST_CASE("cross entropy with smoothed labels is replayed while as many labels are ignored") {
  const auto make = [](int ignored) {
    return [=] {
      StepProbe probe = descent([](const auto& x, const auto& label, const auto& w, const auto& b) {
        return F::cross_entropy(torch::addmm(b, x, w),
                                label,
                                F::CrossEntropyFuncOptions().label_smoothing(0.1).ignore_index(2));
      });
      probe.batch = [=](int step) {
        Batch batch = random_batch(step);
        at::Tensor label = batch["label"] % 2;
        label.slice(0, 0, ignored).fill_(2);
        batch.set("label", label);
        return batch;
      };
      return probe;
    };
  };
  for (const int ignored : {0, 3}) {
    const EqualRun run(make(ignored));
    REQUIRE(run.reports.size() == 1);
    CHECK(run.reports[0].mode != "eager");
    CHECK(run.replays == kSteps - 2);
    CHECK(run.warnings.empty());
  }
}

TEST_CASE("what a mask leaves is guarded by its size, and runs as written when that ever changes") {
  const auto make = [](const std::function<int(int)>& count_of) {
    return [=] {
      StepProbe probe = descent([](const auto& x, const auto& label, const auto& w, const auto& b) {
        const at::Tensor logits = torch::addmm(b, x, w);
        const at::Tensor kept = logits.index({x.select(1, 0) > 0});
        return torch::cross_entropy_loss(logits, label) + kept.sum() + x.masked_select(x > 5).sum();
      });
      probe.batch = [=](int step) {
        Batch batch = random_batch(step);
        batch["x"].select(1, 0).fill_(-1.0).slice(0, 0, count_of(step)).fill_(1.0);
        return batch;
      };
      return probe;
    };
  };
  const EqualRun constant = check_guarded(make([](int) { return 3; }), 1);
  CHECK(contains(constant.reports.at(0).guards.at(0).read, "rondo::index_by_mask"));
  CHECK(constant.reports.at(0).guards.at(0).answer == "[3, 3]");
  check_guarded(make([](int step) { return step < 20 ? 3 : 5; }), 2);
  check_eager(make([](int step) { return step % 9; }),
              {"8 different answers", "rondo::index_by_mask", "train/update"});
}

TEST_CASE("sizes that follow from data are guarded, whatever operator gives them") {
  std::function<at::Tensor(const at::Tensor&)> factor;
  SUBCASE("nonzero") {
    factor = [](const at::Tensor& x) { return (x > -100).nonzero().to(at::kFloat).mean(); };
  }
  SUBCASE("unique") {
    factor = [](const at::Tensor& x) {
      return std::get<0>(at::_unique((x > -100).to(at::kLong))).sum() * 1.0;
    };
  }
  SUBCASE("bincount") {
    factor = [](const at::Tensor& x) {
      return torch::bincount((x > -100).to(at::kLong).flatten()).sum() * 0.01;
    };
  }
  SUBCASE("repeat_interleave") {
    factor = [](const at::Tensor& x) {
      return torch::repeat_interleave((x.select(1, 0) > -100).to(at::kLong)).sum() * 0.01;
    };
  }
  check_guarded([&] { return scaled_by(factor); }, 1);
}

TEST_CASE("an early exit by data has a variant for each way, and each is verified") {
  const auto make = [] {
    return with_signs(scaled_by([](const at::Tensor& x) {
                        return first_is_positive(x) ? x.square().mean() : x.abs().sum() * 0.1;
                      }),
                      &every_third);
  };
  const EqualRun run = check_guarded(make, 2);
  REQUIRE(run.reports.size() == 2);
  CHECK(contains(run.reports[0].guards[0].read, "first_is_positive"));
  CHECK(run.reports[0].guards[0].answer == "false");
  CHECK(run.reports[1].guards[0].answer == "true");
  CHECK(run.reports[0].variant_of == "");
  CHECK(run.reports[1].variant_of == run.reports[0].name);
  CHECK(run.reports[1].name != run.reports[0].name);
  CHECK(run.undone > 0);
  for (const StepReport& report : run.reports) {
    CHECK(report.stats.verify_s > 0.0);
  }
}

TEST_CASE(
    "stochastic depth: by a flag of the step it is guarded, by a number or the host it is not") {
  SUBCASE("a flag that LibTorch draws") {
    const auto make = [] {
      return scaled_by([](const at::Tensor& x) {
        return torch::bernoulli(torch::full({1}, 0.5)).to(at::kBool).item<bool>()
                   ? x.square().mean()
                   : x.abs().sum() * 0.1;
      });
    };
    check_guarded(make, 2);
  }
  SUBCASE("a number that LibTorch draws") {
    check_eager(
        [] {
          return scaled_by([](const at::Tensor& x) {
            return torch::rand({1}).item<double>() < 0.5 ? x.square().mean() : x.abs().sum() * 0.1;
          });
        },
        {"aten::_local_scalar_dense", "floating-point", "train/update"});
  }
  SUBCASE("a flag of the host") {
    check_eager(
        [] {
          const auto step = std::make_shared<int>(0);
          return scaled_by([=](const at::Tensor& x) {
            return ++*step % 2 == 0 ? x.square().mean() : x.abs().sum() * 0.1;
          });
        },
        {"two captures", "train/update"});
  }
}

TEST_CASE("what the host decides rarely, without LibTorch, ends the run at a later comparison") {
  const auto make = [] {
    const auto calls = std::make_shared<int>(0);
    return scaled_by([=](const at::Tensor& x) {
      return ++*calls % 6 == 0 ? x.square().mean() : x.abs().sum() * 0.1;
    });
  };
  CHECK(capture_error(make, 60, "growing").find("Updates since the last comparison may be wrong") !=
        std::string::npos);
  CHECK(capture_error(make, 60, "first") == "");
}

TEST_CASE("a number that the host reads in every step runs as it is written") {
  check_eager(
      [] {
        return scaled_by(
            [](const at::Tensor& x) { return x.mean() / (1.0 + x.abs().max().item<double>()); });
      },
      {"aten::_local_scalar_dense", "floating-point"});
  const EqualRun run = check_eager(
      [] {
        return scaled_by([](const at::Tensor& x) {
          return x.square().mean() * static_cast<double>(x.argmax().item<int64_t>() + 1);
        });
      },
      {"aten::_local_scalar_dense", "8 different answers", "gave"});
  CHECK(run.reports[0].stats.eager_runs > 0);
}

TEST_CASE(
    "a replay that a guard ends leaves no trace: state, random numbers, gradients, closures") {
  const auto calls = std::make_shared<int>(0);
  const auto make = [=] {
    *calls = 0;
    const at::Tensor mean = torch::zeros({6});
    const at::Tensor var = torch::ones({6});
    StepProbe probe = descent([=](const auto& x, const auto& label, const auto& w, const auto& b) {
      const at::Tensor y =
          std::get<0>(at::native_batch_norm(x, {}, {}, mean, var, /*training=*/true, 0.1, 1e-5));
      const at::Tensor dropped = torch::dropout(y, 0.3, true);
      const at::Tensor loss = plain_loss(dropped, label, w, b);
      return first_is_positive(x) ? loss : loss + torch::rand({}) * w.sum();
    });
    probe.state.emplace_back("mean", mean);
    probe.state.emplace_back("var", var);
    probe.body = [=, body = probe.body](Backend& backend, const Batch& batch) {
      backend.defer({{batch["x"].sum()}, [=](const auto&) { ++*calls; }, {}});
      Outputs outputs = body(backend, batch);
      backend.defer({{outputs["loss"]}, [=](const auto&) { ++*calls; }, {}});
      return outputs;
    };
    return with_signs(probe, &every_third);
  };
  const EqualRun run = check_guarded(make, 2);
  CHECK(run.undone >= 18);
  CHECK(*calls == 2 * kSteps);
}

TEST_CASE("a guard that fails in a step that runs in pieces is dealt with at once") {
  const auto make = [] {
    return with_signs(scaled_by([](const at::Tensor& x) {
                        const at::Tensor dropped = torch::dropout(x, 0.3, true);
                        return first_is_positive(x) ? dropped.mean() : dropped.sum() * 0.1;
                      }),
                      &every_third);
  };
  const ProbeRun expected = run_probe(make, *backend_of("eager"), kSteps);
  std::vector<std::string> warnings;
  const auto backend = lenient_backend(&warnings);
  torch::manual_seed(7);
  const StepProbe probe = make();
  backend->set_state([&] { return probe.state; });
  for (int step = 0; step < kSteps; ++step) {
    const Batch batch = backend->stage(probe.batch(step));
    const StepBody body = [&](const Batch& b) { return probe.body(*backend, b); };
    ClosureQueue queue;
    const auto now = [] { return std::chrono::steady_clock::now(); };
    const Outputs* outputs =
        backend->start({"train", {}, "fp32"}, batch, body, IsDue(), queue, now());
    while (outputs == nullptr) {
      outputs = backend->resume(now());
    }
    CHECK(equal_bytes(
        (*outputs)["loss"].detach(),
        expected.bytes.at("step " + std::to_string(step)).as_dict().at("loss").as_tensor()));
  }
  REQUIRE(backend->reports().size() == 2);
}

TEST_CASE("a read that could not be undone is refused, with what to do") {
  SUBCASE("after a host call") {
    check_eager(
        [] {
          StepProbe probe = plain_descent();
          const at::Tensor rate = probe.state[2].second;
          probe.body = [=, body = probe.body](Backend& backend, const Batch& batch) {
            backend.host_call("rate", {rate}, [](const std::vector<at::Tensor>& tensors) {
              tensors[0].mul_(0.99);
            });
            static_cast<void>(first_is_positive(batch["x"]));
            return body(backend, batch);
          };
          return probe;
        },
        {"rondo::host_call", "cannot be undone", "first_is_positive"});
  }
  SUBCASE("after more than 16 MiB of state were written") {
    check_eager(
        [] {
          const at::Tensor big = torch::zeros({(int64_t{17} << 20) / 4});
          StepProbe probe = plain_descent();
          probe.state.emplace_back("big", big);
          probe.body = [=, body = probe.body](Backend& backend, const Batch& batch) {
            big.add_(batch["x"].mean());
            static_cast<void>(first_is_positive(batch["x"]));
            return body(backend, batch);
          };
          return probe;
        },
        {"17 MiB", "first_is_positive"});
  }
  SUBCASE("under the interpreter") {
    check_eager(
        [] {
          return scaled_by([](const at::Tensor& x) { return x.masked_select(x > -9).mean(); });
        },
        {"backend.executor = \"plan\""},
        "interpreter");
  }
}

TEST_CASE("more than 8 variants are an error where refusals are") {
  const auto make = [] {
    return scaled_by([](const at::Tensor& x) {
      return x.square().mean() * static_cast<double>(x.argmax().item<int64_t>() + 1);
    });
  };
  CHECK(contains(capture_error(make, kSteps), "8 different answers"));
}

TEST_CASE("guards stay when every pass is left out, and when none is") {
  BackendOptions options;
  options.without_passes = pass_names();
  const auto make = [] {
    return with_signs(scaled_by([](const at::Tensor& x) {
                        const bool twice = first_is_positive(x) && first_is_positive(x);
                        return twice ? x.square().mean() : x.abs().sum() * 0.1;
                      }),
                      &every_third);
  };
  const auto backend = make_backend(options, TextLog(LogLevel::Error));
  const ProbeRun expected = run_probe(make, *backend_of("eager"), kSteps);
  const ProbeRun got = run_probe(make, *backend, kSteps);
  CHECK(first_difference(expected.bytes, got.bytes) == "");
  REQUIRE(got.reports.size() == 2);
  const EqualRun with_passes(make);
  REQUIRE(with_passes.reports.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(got.reports[i].guards.size() == with_passes.reports[i].guards.size());
  }
}

TEST_CASE("an exported step that a guard ends says what was read and changes nothing") {
  const at::Tensor w = at::zeros({4});
  BodyRequests* requests = nullptr;
  const StepBody body = [&](const Batch& batch) {
    const at::Tensor dropped = at::dropout(batch["x"], 0.5, true);
    const bool is_positive = first_is_positive(batch["x"].unsqueeze(0));
    w.add_(is_positive ? dropped : dropped * 2);
    return Outputs{{"y", w * 2}};
  };
  const std::function<CapturedState()> state = [&] { return CapturedState{{"w", w}}; };
  const Batch batch = {{"x", at::ones({4})}};
  ClosureQueue queue;
  const IsDue is_due;
  StepFile file;
  file.programs = {capture_step("test", {batch, body, is_due, queue, state, requests}).program};
  file.cycle = {0};
  file.schedules = {{}};
  file.reads = {{"a flag"}};
  file.generator = generator_state();
  w.zero_();
  const StateDict saved = to_state(file);
  CHECK(saved.at("rondo_step").as_int() == 2);
  ExportedStep step(step_file_from(saved));
  const at::Tensor good = at::ones({4});
  const at::Tensor bad = -at::ones({4});
  step.bind("x", good.data_ptr());
  step.run();
  const at::Tensor state_before = step.find("w")->clone();
  const at::Tensor output_before = step.find("y")->clone();
  const at::Tensor random_before = step.file().generator.clone();
  step.bind("x", bad.data_ptr());
  try {
    step.run();
    FAIL("no error");
  } catch (const StepGuardError& error) {
    CHECK(contains(error.what(), "a flag"));
  }
  CHECK(equal_bytes(*step.find("w"), state_before));
  CHECK(equal_bytes(*step.find("y"), output_before));
  CHECK(equal_bytes(step.file().generator, random_before));
  CHECK(step.file().batches == 1);
  step.bind("x", good.data_ptr());
  step.run();
  CHECK_FALSE(equal_bytes(*step.find("w"), state_before));
}

TEST_SUITE_END();
