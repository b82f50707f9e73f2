#include "callbacks/builtin/check_gradients.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <string>

#include "callbacks/core/forward_pass.h"
#include "callbacks/core/precision_callback.h"
#include "core/error.h"
#include "core/quiet_metrics.h"
#include "core/registry.h"
#include "core/report_file.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

at::Tensor random_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void set_random_state(const at::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

/// An element of a parameter whose gradient is compared.
struct Element {
  std::string name;
  double gradient = 0.0;
  double difference = 0.0;  ///< quotient of differences
  double error = 0.0;       ///< share of the larger one
};

}  // namespace

CheckGradients::CheckGradients(const Options& options) : options_(options) {
  detail::require(options.elements >= 1, "CheckGradients.elements", ">= 1", options.elements);
  detail::require(options.step > 0.0, "CheckGradients.step", "> 0", options.step);
  detail::require(options.tolerance > 0.0, "CheckGradients.tolerance", "> 0", options.tolerance);
}

void CheckGradients::setup(Trainer& trainer) {
  const bool is_eager = trainer.options().backend.mode == "eager";
  if (!is_eager || trainer.step_slots().precision->dtype() != "fp64") {
    throw UsageError(
        "CheckGradients works with backend.mode = \"eager\" and precision.dtype = \"fp64\": other "
        "steps are not exact enough");
  }
}

void CheckGradients::on_train_step_start(Trainer&, Model&, const Batch& batch) {
  if (!is_done_) {
    batch_ = batch;
    random_state_ = random_state();
  }
}

void CheckGradients::on_after_backward(Trainer& trainer, Model& model, Outputs&) {
  if (is_done_) {
    return;
  }
  is_done_ = true;
  const torch::NoGradGuard no_grad;
  const at::Tensor state_now = random_state();
  const QuietMetrics quiet;
  const auto loss = [&] {
    set_random_state(random_state_);
    return forward_pass(trainer, batch_)["loss"].item<double>();
  };
  std::string table =
      fmt::format("{:<40} {:>14} {:>14} {:>10}\n", "element", "gradient", "difference", "error");
  Element worst;
  for (const auto& named : model.module().named_parameters()) {
    const at::Tensor grad = named.value().grad();
    if (!named.value().requires_grad() || !grad.defined()) {
      continue;
    }
    const at::Tensor values = named.value().view({-1});
    const at::Tensor grads = grad.reshape({-1});
    const double scale = grads.abs().max().item<double>();
    const int64_t count = std::min(options_.elements, values.numel());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t place = i * values.numel() / count;
      const at::Tensor value = values[place];
      const double before = value.item<double>();
      value.fill_(before + options_.step);
      const double above = loss();
      value.fill_(before - options_.step);
      const double below = loss();
      value.fill_(before);
      Element element{fmt::format("{}[{}]", named.key(), place), grads[place].item<double>()};
      element.difference = (above - below) / (2.0 * options_.step);
      const double size =
          std::max({std::abs(element.gradient), std::abs(element.difference), 1e-3 * scale, 1e-8});
      element.error = std::abs(element.gradient - element.difference) / size;
      table += fmt::format("{:<40} {:>14.6g} {:>14.6g} {:>10.2g}\n",
                           element.name,
                           element.gradient,
                           element.difference,
                           element.error);
      const bool is_worse = std::isnan(element.error) || element.error > worst.error;
      worst = is_worse || worst.name.empty() ? element : worst;
    }
  }
  set_random_state(state_now);
  write_report(trainer.log(), trainer.state().artifact_dir / "gradients.txt", table);
  if (!(worst.error <= options_.tolerance)) {
    throw Error(fmt::format(
        "the gradient of {} is {:.6g}, but the loss changes by {:.6g}: check the backward of the "
        "operators that use it; a kink of the loss within {} of the weight has the same effect",
        worst.name,
        worst.gradient,
        worst.difference,
        options_.step));
  }
}

void register_check_gradients(Registry<Callback>& registry) {
  using Options = CheckGradients::Options;
  registry
      .add<CheckGradients>("CheckGradients",
                           "Compares gradients of the first batch with finite differences.")
      .key("elements", &Options::elements, at_least(1), "of each parameter")
      .key("step", &Options::step, greater_than(0), "by which an element is moved either way")
      .key("tolerance",
           &Options::tolerance,
           greater_than(0),
           "of the difference, as a share of the larger number");
}

}  // namespace rondo
