#include "loops/steps/distillation.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/kl_div.h>
#include <ATen/ops/log_softmax.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <optional>
#include <string>
#include <utility>

#include "callbacks/core/precision_callback.h"
#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "core/named_component_option.h"
#include "core/require.h"
#include "loops/step_context.h"
#include "models/model_state.h"
#include "models/module_dtype.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// Rows of log probabilities: classes are the last dimension.
at::Tensor softened(const at::Tensor& logits, double temperature) {
  return at::log_softmax(logits.reshape({-1, logits.size(-1)}).div(temperature), -1);
}

void load_weights(Model& teacher, const std::filesystem::path& path) {
  const StateDict state = read_checkpoint(path);
  const StateValue* const model = state.find("model");
  if (model == nullptr || !model->is_dict()) {
    throw CheckpointError(fmt::format("{} holds no \"model\" for the teacher", path.string()));
  }
  load_model_state(teacher.module(), model->as_dict(), /*strict=*/true);
}

/// `{ name = "Mlp", sizes = [784, 10] }`, as the key `model` takes it, or `{ Mlp = { … } }`.
class TeacherOption {
 public:
  explicit TeacherOption(const Registry<Model>& models) : named_(models), single_(models) {}

  std::string name() const { return named_.name(); }

  std::optional<Factory<Model>> read(const ConfigValue& value, FaultSink& faults) const {
    const auto* const table = value.get_if<ConfigTable>();
    const bool is_single = table != nullptr && table->find("name") == nullptr;
    return is_single ? single_.read(value, faults) : named_.read(value, faults);
  }

  ConfigValue write(const Factory<Model>& factory) const { return named_.write(factory); }

 private:
  NamedComponentOption<Model> named_;
  ComponentOption<Model> single_;
};

}  // namespace

Distillation::Distillation(const Options& options) : options_(options) {
  if (!options.teacher) {
    throw UsageError("Distillation: teacher is missing: the model to learn from");
  }
  detail::require(
      options.temperature > 0.0, "Distillation.temperature", "> 0", options.temperature);
  detail::require(options.weight >= 0.0 && options.weight <= 1.0,
                  "Distillation.weight",
                  "in [0, 1]",
                  options.weight);
}

Distillation::~Distillation() = default;

void Distillation::setup(Trainer& trainer) {
  teacher_ = options_.teacher.make();
  set_floating_dtype(teacher_->module(), trainer.step_slots().precision->dtype_of_weights());
  teacher_->module().to(trainer.state().backend->device());
  if (!options_.weights.empty()) {
    load_weights(*teacher_, options_.weights);
  } else if (!teacher_->is_from_file()) {
    trainer.log().warning(
        "Distillation: the teacher has its initial weights; set weights to a checkpoint of it");
  }
  teacher_->module().eval();
}

NamedTensors Distillation::constants() const {
  NamedTensors tensors;
  if (teacher_ != nullptr) {
    tensors = named_parameters(teacher_->module());
    const NamedTensors buffers = named_buffers(teacher_->module());
    tensors.insert(tensors.end(), buffers.begin(), buffers.end());
  }
  return tensors;
}

std::vector<const torch::nn::Module*> Distillation::captured_modules() const {
  return {&teacher_->module()};
}

at::Tensor Distillation::taught(const Outputs& student, const Batch& batch) const {
  const double temperature = options_.temperature;
  at::Tensor target;
  {
    const at::NoGradGuard no_grad;
    target = softened(teacher_->forward(batch)[options_.output], temperature);
  }
  const at::Tensor own = softened(student[options_.output], temperature);
  const int64_t rows = own.size(0);
  return at::kl_div(own, target, at::Reduction::Sum, /*log_target=*/true)
      .mul(temperature * temperature / static_cast<double>(rows));
}

Outputs Distillation::run(StepContext& step, const Batch& batch) {
  Outputs outputs = step.forward(batch, [&](const Batch& input) {
    Outputs made = step.model().forward(input);
    const at::Tensor student = loss_of(made, input).mul(1.0 - options_.weight);
    const at::Tensor teacher = taught(made, input).mul(options_.weight);
    made.set("loss/student", student);
    made.set("loss/teacher", teacher);
    made.set("loss", student.add(teacher));
    return made;
  });
  step.backward(outputs);
  step.update_all();
  return outputs;
}

void register_distillation(Registry<TrainStep>& registry, const Registry<Model>& models) {
  using Options = Distillation::Options;
  registry
      .add<Distillation>("Distillation", "Trains a model on what a frozen teacher says as well.")
      .key_of("teacher", &Options::teacher, TeacherOption(models), "the model to learn from")
      .required()
      .key("weights", &Options::weights, "checkpoint with the teacher's weights; empty: as made")
      .key("output", &Options::output, "the output of both in which they are compared")
      .key("temperature", &Options::temperature, greater_than(0), "by which logits are divided")
      .key("weight", &Options::weight, between(0, 1), "share of the teacher's part in the loss");
}

}  // namespace rondo
