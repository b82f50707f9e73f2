#include "trainer/export_inference.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <utility>

#include "backends/generator_state.h"
#include "backends/numeric_environment.h"
#include "callbacks/callback_states.h"
#include "callbacks/core/validation_callback.h"
#include "callbacks/global_callbacks.h"
#include "checkpoint/checkpoint_file.h"
#include "checkpoint/checkpoint_tools.h"
#include "checkpoint/safetensors_file.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/glob.h"
#include "core/version.h"
#include "loops/validate_all.h"
#include "loops/validate_stage.h"
#include "models/model_state.h"
#include "tracing/interpreter/script_file.h"
#include "tracing/passes/passes.h"
#include "tracing/traced_backend.h"
#include "trainer/export_step.h"
#include "trainer/exportable_program.h"
#include "trainer/run_aside.h"
#include "trainer/trainer.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

constexpr const char kHook[] = "predict";
constexpr int64_t kBatches = 4;  // two are recorded, the third is compared with eager

/// The samples of another data set again and again, for as many batches as are needed.
class RepeatedSamples final : public Dataset {
 public:
  struct Options {
    std::optional<DataLoader> data;  // keeps the data set alive
    int64_t size = 0;
  };

  explicit RepeatedSamples(const Options& options) : options_(options) {}

  int64_t size() const override { return options_.size; }

  Sample get(int64_t index) const override { return samples().get(index % samples().size()); }

  Batch get_batch(const std::vector<int64_t>& indices) const override {
    std::vector<int64_t> inside = indices;
    for (int64_t& index : inside) {
      index %= samples().size();
    }
    return samples().get_batch(inside);
  }

 private:
  const Dataset& samples() const { return dynamic_cast<const Dataset&>(options_.data->source()); }

  Options options_;
};

DataLoader batches_to_record(const DataLoader& data, int64_t batch_size) {
  const auto* const samples = dynamic_cast<const Dataset*>(&data.source());
  if (samples == nullptr) {
    if (batch_size != 0) {
      throw UsageError(data.name() +
                       " is a stream, whose own batch_size decides: do not give a batch size");
    }
    return data;
  }
  LoaderOptions options = data.options();
  options.batch_size = batch_size == 0 ? options.batch_size : batch_size;
  return DataLoader(
             data.label(), use<RepeatedSamples>({data, kBatches * options.batch_size}), options)
      .in_order();
}

/// A copy of a tensor; copies share memory as their tensors do.
/// \param copies  of storages, by storage
at::Tensor copy_of(const at::Tensor& tensor, std::map<const void*, at::Tensor>& copies) {
  const at::Tensor plain = tensor.detach();
  const c10::Storage& storage = plain.storage();
  at::Tensor& copy = copies[storage.unsafeGetStorageImpl()];
  if (!copy.defined()) {
    const auto bytes = static_cast<int64_t>(storage.nbytes());
    copy = at::empty({0}, plain.options().dtype(at::kByte)).set_(storage, 0, {bytes}, {1}).clone();
  }
  return at::empty({0}, plain.options())
      .set_(copy.storage(), plain.storage_offset(), plain.sizes(), plain.strides());
}

/// Takes the program of a forward pass, with the tensors as they are while it is evaluated.
class TakeProgram final : public Callback {
 public:
  explicit TakeProgram(const Trainer& trainer) : trainer_(&trainer) {}

  void on_predict_start(Trainer& trainer, Model& model, const DataLoader&, Loop&) override {
    if (&trainer == trainer_) {
      model.module().eval();
    }
  }

  void on_predict_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) override {
    if (&trainer == trainer_ && ++batches_ == kBatches - 1) {
      take(trainer);
    }
  }

  StepProgram program() && {
    if (!program_) {
      throw NotSupportedError(
          "the forward pass did not settle: its batches must have one shape, and rondo must be "
          "able to record it (`rondo plan` says why it cannot)");
    }
    return std::move(*program_);
  }

 private:
  void take(const Trainer& trainer) {
    const auto* const backend = dynamic_cast<const TracedBackend*>(trainer.state().backend.get());
    if (backend == nullptr) {
      throw UsageError(
          "exporting a forward pass needs recorded steps: set backend.mode = \"traced\"");
    }
    for (RecordedStep& step : backend->recorded_steps()) {
      if (step.key.step == kHook) {
        program_ = std::move(step.program);
      }
    }
    if (!program_) {
      return;
    }
    std::map<const void*, at::Tensor> copies;
    for (Slot& slot : program_->slots) {
      if (slot.kind == SlotKind::Captured && slot.value.defined()) {
        slot.value = copy_of(slot.value, copies);
      }
    }
  }

  const Trainer* trainer_;
  int64_t batches_ = 0;
  std::optional<StepProgram> program_;
};

bool is_loss(const std::string& name) {
  return name == "loss" || name.rfind("loss/", 0) == 0;
}

/// Leaves the outputs that are meant, and what they need.
StepProgram with_outputs(StepProgram program, const std::vector<std::string>& wanted) {
  std::vector<std::string> known;
  std::vector<std::pair<std::string, SlotId>> kept;
  for (const auto& output : program.outputs) {
    known.push_back(output.first);
    const bool is_meant = wanted.empty()
                              ? !is_loss(output.first)
                              : std::count(wanted.begin(), wanted.end(), output.first) > 0;
    if (is_meant) {
      kept.push_back(output);
    }
  }
  for (const std::string& name : wanted) {
    if (std::count(known.begin(), known.end(), name) == 0) {
      throw UsageError(
          fmt::format("the model has no output \"{}\"{}", name, suggestion(name, known)));
    }
  }
  if (kept.empty()) {
    throw UsageError("the model's only output is its loss: name it (--outputs loss) to export it");
  }
  program.outputs = std::move(kept);
  program.closures.clear();
  program = remove_dead_code(std::move(program));
  const std::vector<bool> used = used_slots(program);
  for (size_t i = 0; i < program.slots.size(); ++i) {
    Slot& slot = program.slots[i];
    if (slot.kind == SlotKind::Input && !used[i]) {
      slot.kind = SlotKind::Produced;  // such as labels: nobody has to give them
    }
  }
  return program;
}

StepProgram record_forward(Trainer& trainer, const DataLoader& data, const ExportOptions& options) {
  TakeProgram take(trainer);
  ValidationLoop loop({std::nullopt, kHook});
  {
    const GlobalCallbackScope scope(take);
    const DataLoader batches = batches_to_record(data, options.batch_size);
    ValidateStage(trainer, batches, loop, LoadFrom::nothing()).run();
  }
  StepProgram program = with_outputs(std::move(take).program(), options.outputs);
  if (!program.host_calls.empty()) {
    throw NotSupportedError(
        fmt::format("the forward pass makes the host call \"{}\", which other programs cannot "
                    "make; remove the callback that makes it",
                    program.host_calls.front()));
  }
  refuse_odd_inputs(program);
  return program;
}

/// The weights as an evaluation sees them.
StateDict weights_to_evaluate(Trainer& trainer, const DataLoader& data) {
  ValidationLoop loop({std::nullopt, kHook});
  ValidateStage stage(trainer, data, loop, LoadFrom::nothing());
  StateDict weights;
  std::exception_ptr error;
  try {
    stage.begin();
    weights = deep_copy(model_state(trainer.state().model->module()));
  } catch (...) {
    error = std::current_exception();
  }
  error = stage.fail(std::move(error));
  if (error) {
    std::rethrow_exception(error);
  }
  return weights;
}

StepFile step_file_of(Trainer& trainer, StepProgram program) {
  StepFile file;
  const auto& last = trainer.state().last_checkpoint;
  file.manifest = {{"rondo", kVersion},
                   {"environment", to_state(current_environment())},
                   {"update", trainer.state().global_step()},
                   {"checkpoint", last ? last->string() : ""},
                   {"config", trainer.options().config_text}};
  file.reads.push_back(reads_of(program));
  file.cycle = {0};
  file.schedules.emplace_back();
  file.generator = generator_state();
  file.exact = trainer.options().backend.exact;
  file.without_passes = trainer.options().backend.without_passes;
  file.programs.push_back(std::move(program));
  file.plans = plan_texts(file);
  return file;
}

/// Where the batches come from that a run evaluates; else its training data.
const DataLoader& data_of(const RunConfig& run) {
  if (run.fit) {
    return run.fit->val.empty() ? run.fit->train : run.fit->val.front();
  }
  if (run.validate) {
    return run.validate->loader;
  }
  if (run.predict) {
    return run.predict->loader;
  }
  throw UsageError(
      "export needs a run with [trainer.fit], [trainer.validate] or [trainer.predict]");
}

TrainerOptions options_to_evaluate(const RunConfig& run, const fs::path& scratch) {
  TrainerOptions options = options_aside(run.init, scratch);
  options.optimizer = {};
  options.optimizers = {};
  options.step = {};
  options.schedulers.clear();
  options.backend.mode = "traced";
  options.backend.executor = "plan";
  options.backend.on_refusal = "error";
  options.untrained = UntrainedWeights::Refuse;
  return options;
}

}  // namespace

void check(const ExportOptions& options) {
  const std::vector<std::string> formats{"torchscript", "safetensors", "inference-step"};
  if (std::count(formats.begin(), formats.end(), options.format) == 0) {
    throw UsageError(fmt::format(
        "export: unknown format \"{}\"{}", options.format, suggestion(options.format, formats)));
  }
  if (options.batch_size < 0) {
    throw UsageError(fmt::format("export: expected a batch size >= 1, got {}", options.batch_size));
  }
}

void export_model(Trainer& trainer,
                  const DataLoader& data,
                  const ExportOptions& options,
                  const fs::path& file) {
  check(options);
  const auto files = real_file_system();
  files->create_directories(fs::absolute(file).parent_path());
  if (options.format == "safetensors") {
    write_safetensors(*files, file, weights_to_evaluate(trainer, data));
    return;
  }
  StepProgram program = record_forward(trainer, data, options);
  if (options.format == "torchscript") {
    write_atomically(*files, file, to_script_file(program));
  } else {
    write_checkpoint(*files, file, to_state(step_file_of(trainer, std::move(program))));
  }
}

fs::path export_model(const RunConfig& run, const ExportOptions& options, const fs::path& file) {
  check(options);
  const DataLoader& data = data_of(run);
  const ScratchDirectory scratch;
  Trainer trainer(options_to_evaluate(run, scratch.path()), TextLog(LogLevel::Warning));
  const LoadFrom from = start_of(run, trainer.log());
  trainer.load_checkpoint(from);
  require_trained(trainer, from);
  export_model(trainer, data, options, file);
  return trainer.state().last_checkpoint.value_or(fs::path());
}

}  // namespace rondo
