#include "callbacks/builtin/tensor_listener.h"

#include <ATen/ops/norm.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "callbacks/builtin/internal/npz.h"
#include "core/glob.h"
#include "core/registry.h"
#include "core/report_file.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

NamedTensors named(const std::string& scope, const TensorMap& tensors) {
  NamedTensors found;
  for (const TensorMap::Item& item : tensors.items()) {
    found.emplace_back(scope + item.first, item.second);
  }
  return found;
}

}  // namespace

TensorListener::TensorListener(const std::string& callback, std::vector<std::string> globs)
    : callback_(callback) {
  detail::require(!globs.empty(), callback + ".tensor_names", "at least one glob", "none");
  for (std::string& glob : globs) {
    globs_.push_back({std::move(glob)});
  }
}

bool TensorListener::fits(const std::string& name) {
  bool is_wanted = false;
  for (Glob& glob : globs_) {
    const bool does_fit = glob_match(glob.text, name);
    glob.has_fit = glob.has_fit || does_fit;
    is_wanted = is_wanted || does_fit;
  }
  return is_wanted;
}

void TensorListener::pick(Trainer& trainer, const NamedTensors& tensors) {
  NamedTensors picked;
  for (const NamedTensor& tensor : tensors) {
    if (!has_checked_) {
      seen_.insert(tensor.first);
    }
    if (tensor.second.defined() && fits(tensor.first)) {
      picked.push_back(tensor);
    }
  }
  if (!picked.empty()) {
    hear(trainer, picked);
  }
}

void TensorListener::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  if (has_checked_ || !trainer.state().position.is_last) {
    return;
  }
  has_checked_ = true;
  for (const Glob& glob : globs_) {
    if (!glob.has_fit) {
      trainer.log().warning(fmt::format(
          "{}: \"{}\" of tensor_names fits no tensor of the first update{}; names begin with "
          "input/, output/, param/ or grad/, and the callback DumpAvailableTensorNames writes all",
          callback_,
          glob.text,
          did_you_mean(glob.text, {seen_.begin(), seen_.end()})));
    }
  }
  seen_.clear();
}

void TensorListener::on_before_forward(Trainer& trainer, Model&, const Batch&, Batch& input) {
  if (trainer.state().is_training) {
    pick(trainer, named("input/", input));
  }
}

void TensorListener::on_after_forward(Trainer& trainer, Model&, Outputs& outputs, const Batch&) {
  if (trainer.state().is_training) {
    pick(trainer, named("output/", outputs));
  }
}

void TensorListener::on_before_optimizer_step(Trainer& trainer, Model&, Optimizer& optimizer) {
  NamedTensors tensors;
  for (const ParamGroup& group : optimizer.groups()) {
    for (const Parameter& parameter : group.params) {
      tensors.emplace_back("param/" + parameter.name, parameter.value);
      tensors.emplace_back("grad/" + parameter.name, parameter.grad());
    }
  }
  pick(trainer, tensors);
}

void TensorListener::after_steps(Trainer& trainer,
                                 const NamedTensors& tensors,
                                 const std::optional<Time>& every,
                                 std::function<void(const std::vector<at::Tensor>&)> function) {
  std::vector<at::Tensor> values;
  for (const NamedTensor& tensor : tensors) {
    values.push_back(tensor.second.detach());
  }
  const Cadence cadence{/*only_log_steps=*/!every, every.value_or(1)};
  trainer.state().backend->defer({std::move(values), std::move(function), cadence});
}

SummaryTensorListener::SummaryTensorListener(const Options& options)
    : TensorListener("SummaryTensorListener", options.tensor_names), options_(options) {
  detail::require(!options.every || options.every->value() > 0.0,
                  "SummaryTensorListener.every",
                  "> 0",
                  options.every ? options.every->to_string() : "");
}

void SummaryTensorListener::hear(Trainer& trainer, const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const NamedTensor& tensor : tensors) {
    names.push_back(options_.name + "/" + tensor.first);
  }
  after_steps(
      trainer, tensors, options_.every, [&trainer, names](const std::vector<at::Tensor>& now) {
        for (size_t i = 0; i < names.size(); ++i) {
          trainer.log_media({names[i], histogram_of(now[i])});
        }
      });
}

NormTensorListener::NormTensorListener(const Options& options)
    : TensorListener("NormTensorListener", options.tensor_names), options_(options) {}

void NormTensorListener::hear(Trainer& trainer, const NamedTensors& tensors) {
  Metrics norms;
  for (const NamedTensor& tensor : tensors) {
    norms_.push_back(tensor.second.detach().to(at::kFloat).norm());
    norms.set(options_.name + "/" + tensor.first, norms_.back());
  }
  trainer.log_metrics(norms);
}

void NormTensorListener::on_train_step_end(Trainer& trainer, Model&, const Outputs&, const Batch&) {
  if (!norms_.empty()) {
    const std::vector<at::Tensor> norms = std::exchange(norms_, {});
    trainer.log_metrics({{options_.name + "/__all__", at::stack(norms).norm()}});
  }
}

void DumpAvailableTensorNames::hear(Trainer&, const NamedTensors& tensors) {
  for (const NamedTensor& tensor : tensors) {
    if (!is_written_) {
      lines_.push_back(fmt::format("{}, [{}], {}\n",
                                   tensor.first,
                                   fmt::join(tensor.second.sizes(), ", "),
                                   c10::toString(tensor.second.scalar_type())));
    }
  }
}

void DumpAvailableTensorNames::on_train_batch_end(
    Trainer& trainer, Model& model, const Outputs& outputs, const Batch& batch, int64_t index) {
  TensorListener::on_train_batch_end(trainer, model, outputs, batch, index);
  if (is_written_ || !trainer.state().position.is_last) {
    return;
  }
  std::sort(lines_.begin(), lines_.end());
  lines_.erase(std::unique(lines_.begin(), lines_.end()), lines_.end());
  write_report(trainer.log(),
               trainer.state().artifact_dir / "available_tensor_names.txt",
               fmt::format("{}", fmt::join(lines_, "")));
  is_written_ = true;
  lines_.clear();
}

DumpActivations::DumpActivations(const Options& options)
    : TensorListener("DumpActivations", options.tensor_names), options_(options) {
  detail::require(options.steps >= 1, "DumpActivations.steps", ">= 1", options.steps);
}

// Also once all is written, as a replayed step does.
void DumpActivations::hear(Trainer& trainer, const NamedTensors& tensors) {
  std::vector<std::string> names;
  std::vector<at::Tensor> values;
  for (const NamedTensor& tensor : tensors) {
    names.push_back(tensor.first);
    values.push_back(tensor.second.detach());
  }
  trainer.defer(values, [this, names](const std::vector<at::Tensor>& now) {
    for (size_t i = 0; i < names.size() && !is_written_ && steps_ < options_.steps; ++i) {
      std::vector<at::Tensor>& kept = kept_[names[i]];
      if (kept.empty() || kept.front().sizes() == now[i].sizes()) {
        kept.push_back(now[i].to(at::kCPU).clone());
      }
    }
  });
}

void DumpActivations::on_train_batch_end(
    Trainer& trainer, Model& model, const Outputs& outputs, const Batch& batch, int64_t index) {
  TensorListener::on_train_batch_end(trainer, model, outputs, batch, index);
  if (is_written_) {
    return;
  }
  trainer.defer({}, [this, &trainer](const std::vector<at::Tensor>&) {  // after those of the step
    if (++steps_ == options_.steps) {
      write(trainer);
    }
  });
}

void DumpActivations::on_fit_end(Trainer& trainer, Loop&) {
  if (!is_written_) {
    write(trainer);
  }
}

void DumpActivations::write(Trainer& trainer) {
  NamedTensors stacked;
  for (const auto& [name, values] : kept_) {
    stacked.emplace_back(name, at::stack(values));
  }
  is_written_ = true;
  kept_.clear();
  write_report(
      trainer.log(), trainer.state().artifact_dir / "act_dumps.npz", detail::npz_of(stacked));
}

void register_tensor_listener(Registry<Callback>& registry) {
  const char* const globs = "globs of input/…, output/…, param/… and grad/…";
  registry
      .add<SummaryTensorListener>("SummaryTensorListener", "Logs histograms of a step's tensors.")
      .key("tensor_names", &SummaryTensorListener::Options::tensor_names, globs)
      .required()
      .key("name", &SummaryTensorListener::Options::name, "before the tensor's name")
      .key("every",
           &SummaryTensorListener::Options::every,
           greater_than(0),
           "time between two such steps; absent: all log steps");
  registry.add<NormTensorListener>("NormTensorListener", "Logs norms of a step's tensors.")
      .key("tensor_names", &NormTensorListener::Options::tensor_names, globs)
      .required()
      .key("name", &NormTensorListener::Options::name, "before the tensor's name");
  registry.add<DumpAvailableTensorNames>(
      "DumpAvailableTensorNames", "Writes the names of a step's tensors that listeners can hear.");
  registry.add<DumpActivations>("DumpActivations", "Writes tensors of a run's first steps as .npz.")
      .key("tensor_names", &DumpActivations::Options::tensor_names, globs)
      .key("steps", &DumpActivations::Options::steps, at_least(1), "batches that are kept");
}

}  // namespace rondo
