#include "pymarlin/trainer.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "callbacks/core/checkpoint_callback.h"
#include "callbacks/listeners.h"
#include "checkpoint/checkpoint_file.h"
#include "checkpoint/foreign_state.h"
#include "core/config_value.h"
#include "core/error.h"
#include "core/file_system.h"
#include "pymarlin/output_collector.h"
#include "trainer/pymarlin_mapping.h"
#include "trainer/run_config.h"
#include "trainer/trainer.h"

namespace rondo::pymarlin {

namespace fs = std::filesystem;

namespace {

/// The module in rondo's eyes. The number of the step is a tensor that the hooks below fill.
class Recipe final : public Model {
 public:
  struct Options {
    std::shared_ptr<ModuleInterface> interface;
    at::Tensor global_step;
  };

  explicit Recipe(const Options& options) : options_(options) {}

  torch::nn::Module& module() override { return *options_.interface; }

  Outputs forward(const Batch& batch) override {
    ModuleInterface& interface = *options_.interface;
    const c10::Device device =
        batch.items().empty() ? c10::Device(at::kCPU) : batch.items().front().second.device();
    return named(interface.is_training() ? interface.train_step(options_.global_step, batch, device)
                                         : interface.val_step(options_.global_step, batch, device));
  }

 private:
  Options options_;
};

/// Calls the hooks of a module.
class Hooks final : public Callback, public HearsWholePasses {
 public:
  struct Options {
    std::shared_ptr<ModuleInterface> interface;
    std::shared_ptr<Stats> stats;
    at::Tensor global_step;
    int64_t accumulation = 1;
    Trainer* owner = nullptr;
  };

  explicit Hooks(const Options& options) : options_(options) {}

  NamedTensors captured_state() override { return {{"global_step", options_.global_step}}; }

  void on_epoch_start(rondo::Trainer& trainer, Model&, const DataLoader&, int64_t epoch) override {
    end_epoch(trainer);
    options_.stats->update("epoch", static_cast<double>(epoch), /*frequent=*/true);
    interface().on_begin_train_epoch(trainer.state().timestamp.update, epoch);
  }

  void on_epoch_end(rondo::Trainer&, Model&, const DataLoader&, int64_t) override {
    epoch_ended_ = true;
  }

  void on_train_batch_start(rondo::Trainer& trainer, Model&, const Batch&, int64_t) override {
    options_.global_step.fill_(trainer.state().timestamp.update + 1);
  }

  void on_after_backward(rondo::Trainer&, Model&, Outputs& outputs) override {
    interface().on_end_backward(options_.global_step - 1,
                                outputs["loss"] / static_cast<double>(options_.accumulation));
  }

  /// Weights and gradients are both there in the step alone.
  void on_before_optimizer_step(rondo::Trainer& trainer, Model&, Optimizer& optimizer) override {
    std::vector<std::string> names;
    std::vector<at::Tensor> norms;
    const auto add = [&](const std::string& name, const at::Tensor& tensor) {
      if (tensor.defined()) {
        names.push_back(name);
        norms.push_back(tensor.detach().to(at::kFloat).norm());
      }
    };
    for (const ParamGroup& group : optimizer.groups()) {
      for (const Parameter& parameter : group.params) {
        if (options_.stats->logs_model_of(parameter.name)) {
          add("weight_norm/" + parameter.name, parameter.value);
          add("grad_norm/" + parameter.name, parameter.grad());
        }
      }
    }
    if (norms.empty()) {
      return;
    }
    trainer.defer(
        {at::stack(norms)},
        [this, &trainer, names](const std::vector<at::Tensor>& tensors) {
          const at::Tensor values = tensors.front().cpu();
          std::map<std::string, double> by_name;
          for (size_t i = 0; i < names.size(); ++i) {
            by_name[names[i]] = values[static_cast<int64_t>(i)].item<double>();
          }
          options_.stats->log_model(trainer.state().timestamp.update, by_name);
        },
        options_.stats->arguments().log_model_steps);
  }

  void on_train_batch_end(
      rondo::Trainer& trainer, Model&, const Outputs& outputs, const Batch&, int64_t) override {
    of_epoch_.collect(outputs);
    of_step_.collect(outputs);
    if (!trainer.state().position.is_last) {
      return;
    }
    const int64_t step = trainer.state().timestamp.update;
    const CollatedOutputs collated = of_step_.joined();
    of_step_.reset();
    options_.stats->update("loss", collated.front().mean().item<double>(), /*frequent=*/true);
    interface().on_end_train_step(step, collated);
    options_.stats->log_stats(step);
  }

  void on_validate_start(rondo::Trainer& trainer,
                         Model&,
                         const DataLoader& loader,
                         Loop&) override {
    of_validation_.reset();
    key_ = loader.label().empty() ? "default" : loader.label();
    options_.global_step.fill_(trainer.state().timestamp.update);
  }

  void on_validate_batch_end(
      rondo::Trainer&, Model&, const Outputs& outputs, const Batch&, int64_t) override {
    of_validation_.collect(outputs);
  }

  void on_validate_end(rondo::Trainer& trainer, Model&, Loop&) override {
    const int64_t step = trainer.state().timestamp.update;
    interface().on_end_val_epoch(step, of_validation_.joined(), key_);
    options_.stats->log_long_stats(step);
  }

  void on_fit_end(rondo::Trainer& trainer, Loop&) override {
    end_epoch(trainer);
    if (trainer.stop_reason() != nullptr) {
      return;
    }
    const int64_t step = trainer.state().timestamp.update;
    options_.owner->save_model_checkpoint();
    interface().on_end_train(step);
    options_.stats->log_long_stats(step);
    options_.stats->finish();
  }

 private:
  ModuleInterface& interface() { return *options_.interface; }

  /// An epoch ends after its validation, which rondo runs once the last batch is over.
  void end_epoch(rondo::Trainer& trainer) {
    if (!std::exchange(epoch_ended_, false)) {
      return;
    }
    const int64_t step = trainer.state().timestamp.update;
    interface().on_end_train_epoch(step, of_epoch_.joined());
    of_epoch_.reset();
    options_.stats->log_long_stats(step);
  }

  Options options_;
  OutputCollector of_step_;
  OutputCollector of_epoch_;
  OutputCollector of_validation_;
  std::string key_;
  bool epoch_ended_ = false;
};

/// Stats in rondo's loggers, of which the one for TensorBoard is there.
class LoggerWriter final : public Writer {
 public:
  explicit LoggerWriter(std::shared_ptr<rondo::Trainer*> trainer) : trainer_(std::move(trainer)) {}

  void log_scalar(const std::string& name, double value, int64_t) override {
    if (name != "loss" && *trainer_ != nullptr) {  // which rondo logs
      (*trainer_)->log_metrics({{name, value}});
    }
  }

  void log_multi(const std::string& group,
                 const std::map<std::string, double>& values,
                 int64_t step) override {
    for (const auto& [name, value] : values) {
      log_scalar(group + "/" + name, value, step);
    }
  }

 private:
  std::shared_ptr<rondo::Trainer*> trainer_;
};

bool has(const std::vector<std::string>& names, const char* name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The table at the end of a path, made where it is missing.
ConfigTable& table_at(ConfigTable& root, const std::vector<std::string>& path) {
  ConfigTable* table = &root;
  for (const std::string& part : path) {
    if (table->find(part) == nullptr) {
      table->set(part, ConfigValue(ConfigValue::Variant(ConfigTable())));
    }
    table = table->find(part)->get_if<ConfigTable>();
  }
  return *table;
}

/// What TrainerArguments say in rondo's words, read as a run file would be.
TrainerOptions options_of(const TrainerArguments& arguments) {
  static const Registries* const kBuiltins = [] {
    auto* const all = new Registries();  // factories of loggers lead here, as long as there are any
    register_builtins(*all);
    return all;
  }();
  ConfigTable init;
  init.set("model_dir", ConfigValue(arguments.checkpointer_args.save_dir.string()));
  for (MappedKey& key : mapped_keys(arguments)) {
    const std::string name = key.path.back();
    key.path.pop_back();
    if (!key.is_optional) {
      table_at(init, key.path).set(name, std::move(key.value));
    }
  }
  TrainerOptions options = read_options(init, *kBuiltins);
  options.loop.grad_accum_steps = gradient_accumulation(arguments);
  if (arguments.max_train_steps_per_epoch) {
    options.loop.train_subset_num_batches =
        *arguments.max_train_steps_per_epoch * options.loop.grad_accum_steps;
  }
  return options;
}

}  // namespace

struct Trainer::Run {
  std::shared_ptr<ModuleInterface> interface;
  TrainerArguments arguments;
  std::shared_ptr<Stats> stats;
  at::Tensor global_step = at::zeros({}, at::kLong);
  std::optional<DataLoader> train;
  Loaders val;
  int64_t steps_per_epoch = 0;
  bool has_new_state = false;  // of `update_state`, and not of a file
  std::shared_ptr<rondo::Trainer*> for_writers = std::make_shared<rondo::Trainer*>(nullptr);
  std::unique_ptr<rondo::Trainer> trainer;  // last: its callbacks use the others
};

Trainer::Trainer(std::shared_ptr<ModuleInterface> module,
                 TrainerArguments arguments,
                 const std::function<void(TrainerOptions&)>& change,
                 TextLog log)
    : run_(std::make_unique<Run>()) {
  check(arguments);
  Run& run = *run_;
  run.interface = std::move(module);
  run.arguments = std::move(arguments);
  run.stats = std::make_shared<Stats>(run.arguments.stats_args);
  if (has(run.arguments.writers, "stdout")) {
    run.stats->add_writer(stdout_writer());
  }
  run.stats->add_writer(std::make_shared<LoggerWriter>(run.for_writers));
  run.train = run.interface->get_train_dataloader(train_step_batch_size());
  run.val = run.interface->get_val_dataloaders(run.arguments.val_batch_size);
  const int64_t batches = run.train->size().value_or(0);
  run.steps_per_epoch = batches / gradient_accumulation() + 1;
  if (const auto& most = run.arguments.max_train_steps_per_epoch) {
    run.steps_per_epoch = std::min(run.steps_per_epoch, *most);
  }
  TrainerOptions options = options_of(run.arguments);
  options.model = use<Recipe>({run.interface, run.global_step});
  const OptimizersSchedulers updates =
      run.interface->get_optimizers_schedulers(run.steps_per_epoch, run.arguments.epochs);
  options.optimizer = updates.optimizer;
  options.schedulers = updates.schedulers;
  options.callbacks.push_back(
      use<Hooks>({run.interface, run.stats, run.global_step, gradient_accumulation(), this}));
  if (change) {
    change(options);
  }
  run.trainer = std::make_unique<rondo::Trainer>(std::move(options), std::move(log));
  *run.for_writers = run.trainer.get();
  run.trainer->load_checkpoint({});
}

Trainer::~Trainer() = default;

void Trainer::train() {
  // A fit checks a checkpoint for more than a load does, so it loads the newest one itself.
  run_->trainer->fit(
      *run_->train, run_->val, run_->has_new_state ? LoadFrom::nothing() : LoadFrom());
  run_->has_new_state = false;
}

void Trainer::validate() {
  const State& state = run_->trainer->state();
  const bool has_model = state.has_trained || state.has_weights;
  for (const DataLoader& loader : run_->val) {
    run_->trainer->validate(loader, has_model ? LoadFrom::nothing() : LoadFrom());  // or warns
  }
}

int64_t Trainer::train_step_batch_size() const {
  return pymarlin::train_step_batch_size(run_->arguments);
}

int64_t Trainer::gradient_accumulation() const {
  return pymarlin::gradient_accumulation(run_->arguments);
}

int64_t Trainer::estimated_global_steps_per_epoch() const {
  return run_->steps_per_epoch;
}

int64_t Trainer::global_steps_finished() const {
  return run_->trainer->state().timestamp.update;
}

int64_t Trainer::total_steps_finished() const {
  return run_->trainer->state().timestamp.batch;
}

fs::path Trainer::save_model_checkpoint() const {
  const CheckpointerArguments& saving = run_->arguments.checkpointer_args;
  if (!saving.checkpoint || saving.model_state_save_dir.empty()) {
    return {};
  }
  const fs::path file =
      saving.model_state_save_dir / fmt::format("{}_model_{}.{}",
                                                saving.file_prefix,
                                                run_->trainer->state().timestamp.epoch - 1,
                                                saving.file_ext);
  const auto files = real_file_system();
  files->create_directories(saving.model_state_save_dir);
  write_checkpoint(*files, file, run_->interface->get_state());
  return file;
}

StateDict Trainer::get_state() {
  return run_->trainer->state_dict();
}

void Trainer::update_state(const StateDict& state) {
  if (state.empty()) {
    return;
  }
  if (!is_run_state(state)) {
    throw CheckpointError(
        "update_state: expected the state of a whole run, as get_state gives it; weights alone go "
        "to update_state of the module");
  }
  run_->trainer->load_state_dict(state);
  run_->has_new_state = true;
}

Stats& Trainer::stats() {
  return *run_->stats;
}

rondo::Trainer& Trainer::rondo_trainer() {
  return *run_->trainer;
}

}  // namespace rondo::pymarlin
