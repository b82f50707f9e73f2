#include "support/step_probe.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <ATen/CPUGeneratorImpl.h>

#include <memory>

#include "core/error.h"
#include "tracing/make_backend.h"

namespace rondo::test {

Batch random_batch(int step, int64_t rows) {
  const at::Generator numbers = at::detail::createCPUGenerator(1000 + static_cast<uint64_t>(step));
  return {{"x", at::randn({rows, 6}, numbers, at::TensorOptions())},
          {"label", at::randint(3, {rows}, numbers, at::TensorOptions().dtype(at::kLong))}};
}

std::unique_ptr<Backend> backend_of(const std::string& mode, const std::string& verify) {
  BackendOptions options;
  options.mode = mode;
  options.verify = verify;
  options.on_refusal = "error";
  return make_backend(options, TextLog::to([](LogLevel, std::string_view) {}));
}

int64_t ProbeRun::replays() const {
  int64_t sum = 0;
  for (const StepReport& report : reports) {
    sum += report.stats.replays;
  }
  return sum;
}

ProbeRun run_probe(const std::function<StepProbe()>& make, Backend& backend, int steps) {
  torch::manual_seed(7);
  const StepProbe probe = make();
  backend.set_state([&] {
    CapturedState state = probe.state;
    const CapturedState more = probe.more_state ? probe.more_state() : CapturedState();
    state.insert(state.end(), more.begin(), more.end());
    return state;
  });
  ProbeRun run;
  for (int step = 0; step < steps; ++step) {
    const Batch batch = backend.stage(probe.batch ? probe.batch(step) : random_batch(step));
    const StepKey key = probe.key ? probe.key(step) : StepKey{"train", {}, "fp32"};
    IsDue is_due;
    if (probe.is_due) {
      is_due = [&](const Cadence& cadence) { return probe.is_due(step, cadence); };
    }
    ClosureQueue queue;
    const Outputs outputs = backend.run(
        key, batch, [&](const Batch& b) { return probe.body(backend, b); }, is_due, queue);
    StateDict bytes;
    for (const auto& [name, tensor] : outputs.items()) {
      bytes.set(name, tensor.detach().clone());
    }
    for (size_t i = 0; i < queue.size(); ++i) {
      StateList tensors;
      for (const at::Tensor& tensor : queue[i].tensors) {
        tensors.emplace_back(tensor.detach().clone());
      }
      bytes.set("closure " + std::to_string(i), tensors);
      queue[i].run(queue[i].tensors);
    }
    run.bytes.set("step " + std::to_string(step), bytes);
  }
  for (const auto& [name, tensor] : probe.state) {
    run.bytes.set(name, tensor.detach().clone());
  }
  run.bytes.set("generator", at::detail::getDefaultCPUGenerator().get_state());
  run.reports = backend.reports();
  return run;
}

std::string traced_against_eager(const std::function<StepProbe()>& make, int steps, int captures) {
  const auto eager = backend_of("eager");
  const auto traced = backend_of("traced");
  const ProbeRun expected = run_probe(make, *eager, steps);
  const ProbeRun got = run_probe(make, *traced, steps);
  const std::string difference = first_difference(expected.bytes, got.bytes);
  if (difference.empty() && got.replays() != steps - captures) {
    return "only " + std::to_string(got.replays()) + " replays";
  }
  return difference;
}

std::string capture_error(const std::function<StepProbe()>& make,
                          int steps,
                          const std::string& verify) {
  const auto traced = backend_of("traced", verify);
  try {
    run_probe(make, *traced, steps);
  } catch (const CaptureError& error) {
    return error.what();
  }
  return "";
}

StepProbe descent(const ProbeLoss& loss) {
  const at::Tensor w = torch::randn({6, 3}).set_requires_grad(true);
  const at::Tensor b = torch::randn({3}).set_requires_grad(true);
  const at::Tensor lr = torch::full({}, 0.05, at::kDouble);
  StepProbe probe;
  probe.state = {{"w", w}, {"b", b}, {"lr", lr}};
  probe.body = [=](Backend&, const Batch& batch) {
    w.mutable_grad().reset();
    b.mutable_grad().reset();
    const at::Tensor value = loss(batch["x"], batch["label"], w, b);
    value.backward();
    descend({w, b}, lr);
    return Outputs{{"loss", value}};
  };
  return probe;
}

at::Tensor plain_loss(const at::Tensor& x,
                      const at::Tensor& label,
                      const at::Tensor& w,
                      const at::Tensor& b) {
  return torch::cross_entropy_loss(torch::addmm(b, x, w), label);
}

StepProbe plain_descent() {
  return descent(plain_loss);
}

StepProbe with_momentum(StepProbe probe) {
  const auto momentum = std::make_shared<at::Tensor>();
  const at::Tensor w = probe.state[0].second;
  probe.more_state = [=] { return CapturedState{{"momentum", *momentum}}; };
  probe.body = [=, body = probe.body](Backend& backend, const Batch& batch) {
    Outputs outputs = body(backend, batch);
    const torch::NoGradGuard no_grad;
    if (momentum->defined()) {
      momentum->mul_(0.9).add_(w.grad());
    } else {
      *momentum = w.grad().clone();
    }
    outputs.set("momentum", momentum->clone());
    return outputs;
  };
  return probe;
}

void descend(const std::vector<at::Tensor>& parameters, const at::Tensor& lr) {
  const torch::NoGradGuard no_grad;
  for (const at::Tensor& parameter : parameters) {
    if (parameter.grad().defined()) {
      parameter.sub_(parameter.grad() * lr);
    }
  }
}

}  // namespace rondo::test
