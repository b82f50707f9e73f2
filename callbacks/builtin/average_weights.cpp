#include "callbacks/builtin/average_weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "callbacks/core/forward_pass.h"
#include "callbacks/core/run_plan.h"
#include "callbacks/core/sparsity_callback.h"
#include "checkpoint/checkpoint_tools.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/quiet_metrics.h"
#include "core/registry.h"
#include "core/require.h"
#include "models/batch_norm_statistics.h"
#include "models/model_state.h"
#include "optim/trained_parameter.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// Whether the average is a checkpoint's model, and this state has the raw weights.
constexpr const char* kIsModel = "average_is_model";

/// Of an average that a checkpoint's model has rounded to half precision.
std::string name_unrounded(const std::string& name) {
  return "float32." + name;
}

constexpr const char* kInstead = "instead";

/// A share of 0.001 of a weight is less than half a unit in the last place of bfloat16.
at::ScalarType dtype_of_average(const at::Tensor& weight) {
  return weight.element_size() < 4 ? at::kFloat : weight.scalar_type();
}

StateDict dict_of(const NamedTensors& tensors) {
  StateDict dict;
  for (const NamedTensor& tensor : tensors) {
    dict.set(tensor.first, tensor.second);
  }
  return dict;
}

int64_t in_updates(const char* option, const Time& time, const RunLength& run) {
  const Time updates = counted(time, run);
  if (updates.unit() != TimeUnit::Update) {
    throw UsageError(fmt::format(
        "AverageWeights: {} is {}, which this run does not count in updates: give updates, epochs "
        "or a share of the run",
        option,
        time.to_string()));
  }
  return updates.count();
}

/// Under each name that tied weights have.
void replace(StateDict& model, const at::Tensor& weight, const at::Tensor& by) {
  for (StateDict::Item& item : model.items()) {
    if (item.second.is_tensor() && item.second.as_tensor().is_alias_of(weight) &&
        item.second.as_tensor().data_ptr() == weight.data_ptr()) {
      item.second = by;
    }
  }
}

}  // namespace

AverageWeights::AverageWeights(const Options& options) : options_(options) {
  detail::require(options_.kind == "ema" || options_.kind == "swa",
                  "AverageWeights: kind",
                  "\"ema\" or \"swa\"",
                  options_.kind);
  detail::require(options_.decay >= 0 && options_.decay < 1,
                  "AverageWeights: decay",
                  "in [0, 1)",
                  options_.decay);
  detail::require(
      options_.start.value() >= 0, "AverageWeights: start", ">= 0", options_.start.to_string());
  detail::require(
      options_.every.value() > 0, "AverageWeights: every", "> 0", options_.every.to_string());
  if (options_.half_life) {
    detail::require(options_.half_life->value() > 0,
                    "AverageWeights: half_life",
                    "> 0",
                    options_.half_life->to_string());
    detail::require(
        options_.kind == "ema", "AverageWeights: kind with half_life", "\"ema\"", options_.kind);
  }
  detail::require(options_.save == "beside" || options_.save == kInstead,
                  "AverageWeights: save",
                  "\"beside\" or \"instead\"",
                  options_.save);
}

void AverageWeights::post_setup(Trainer& trainer) {
  require_alone(trainer);
  const torch::nn::Module& module = trainer.state().model->module();
  for (const NamedTensor& parameter : named_parameters(module)) {
    add(trainer, parameter);
  }
  parameters_ = weights_.size();
  for (const NamedTensor& buffer : named_buffers(module)) {
    add(trainer, buffer);
  }
  share_ = at::zeros(
      {}, at::TensorOptions().dtype(at::kDouble).device(trainer.state().backend->device()));
}

void AverageWeights::add(Trainer& trainer, const NamedTensor& weight) {
  const bool is_tied = std::any_of(weights_.begin(), weights_.end(), [&](const auto& known) {
    return known.second.is_same(weight.second);
  });
  if (!weight.second.is_floating_point() || is_tied) {
    return;
  }
  at::Tensor source = weight.second.detach();
  for (const auto& optimizer : trainer.state().optimizers) {
    if (const Parameter* const trained = trained_parameter(*optimizer, weight.second)) {
      source = trained->value.detach();
    }
  }
  const SparsityMasks* const masks = trainer.slot<SparsityCallback>().masks();
  weights_.push_back(weight);
  sources_.push_back(source);
  masks_.push_back(masks != nullptr ? masks->mask_of(weight.second) : nullptr);
  average_.emplace_back(weight.first, source.to(dtype_of_average(source), false, /*copy=*/true));
}

void AverageWeights::require_alone(const Trainer& trainer) const {
  for (const CallbackMap::Entry& entry : trainer.callbacks().entries()) {
    const auto* const other = dynamic_cast<const AverageWeights*>(entry.callback.get());
    if (other == nullptr || other == this) {
      continue;
    }
    if (options_.in_validation && other->options_.in_validation) {
      throw UsageError(
          "two AverageWeights have in_validation = true, and a validation can see one average: set "
          "in_validation = false in one of them");
    }
    if (options_.in_validation && other->options_.save == kInstead) {
      throw UsageError(
          "an AverageWeights has in_validation = true and another one save = \"instead\": a "
          "checkpoint that is written in a validation would take one average for the other. Give "
          "both to the same one");
    }
    if (options_.save == kInstead && other->options_.save == kInstead) {
      throw UsageError(
          "two AverageWeights have save = \"instead\", and a checkpoint has one model: set save = "
          "\"beside\" in one of them");
    }
  }
}

void AverageWeights::warn_of_start(const Trainer& trainer) const {
  const std::optional<Time>& total = trainer.state().plan->length().total;
  if (total && total->unit() == TimeUnit::Update && static_cast<double>(start_) >= total->value()) {
    trainer.log().warning(fmt::format(
        "AverageWeights: start is {}, and the run ends at update {}: it averages nothing. Set an "
        "earlier start",
        options_.start.to_string(),
        total->value()));
  }
}

void AverageWeights::on_fit_start(Trainer& trainer,
                                  const DataLoader& train,
                                  const Loaders&,
                                  Loop&) {
  const RunLength& run = trainer.state().plan->length();
  start_ = in_updates("start", options_.start, run);
  every_ = std::max<int64_t>(in_updates("every", options_.every, run), 1);
  decay_ = options_.decay;
  if (options_.half_life) {
    const int64_t half = std::max<int64_t>(in_updates("half_life", *options_.half_life, run), 1);
    decay_ = std::exp2(-static_cast<double>(every_) / static_cast<double>(half));
  }
  warn_of_start(trainer);
  if (options_.update_batch_norm) {
    train_ = train;
  }
  if (averaged_ == 0) {  // weights that a checkpoint or a file gave
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < sources_.size(); ++i) {
      average_[i].second.copy_(sources_[i]);
    }
  }
}

bool AverageWeights::is_due(int64_t update) const {
  return update > start_ && (update - start_ - 1) % every_ == 0;
}

double AverageWeights::share_of_weights(int64_t update) const {
  if (update <= start_) {
    return 1.0;
  }
  if (!is_due(update)) {
    return 0.0;
  }
  const bool is_first = averaged_ == 0;
  if (options_.kind == "swa" || is_first) {
    return 1.0 / static_cast<double>(averaged_ + 1);
  }
  return 1.0 - decay_;
}

void AverageWeights::on_train_batch_start(Trainer& trainer, Model&, const Batch&, int64_t) {
  share_.fill_(share_of_weights(trainer.state().global_step() + 1));
}

// Once an update, whatever optimizers step in it.
void AverageWeights::on_train_step_end(Trainer& trainer, Model&, const Outputs&, const Batch&) {
  if (!trainer.state().position.is_last) {
    return;
  }
  const at::NoGradGuard no_grad;
  at::Tensor share = share_;
  for (size_t i = 0; i < sources_.size(); ++i) {
    at::Tensor& average = average_[i].second;
    if (share.scalar_type() != average.scalar_type()) {  // as a rule once, for the first of them
      share = share_.to(average.scalar_type());
    }
    average.lerp_(sources_[i].to(average.scalar_type()), share);
    if (masks_[i] != nullptr) {
      masks_[i]->zero(average);
    }
  }
}

void AverageWeights::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  if (trainer.state().position.is_last && is_due(trainer.state().global_step())) {
    ++averaged_;
  }
}

void AverageWeights::on_enter_validate(Trainer&, Cleanup& cleanup, const DataLoader&, Loop&) {
  cleanup.push([this](const std::exception_ptr&) {
    if (is_exchanged_) {
      exchange();
    }
  });
}

void AverageWeights::on_validate_start(Trainer&, Model&, const DataLoader&, Loop&) {
  show_average();
}

void AverageWeights::on_predict_start(Trainer&, Model&, const DataLoader&, Loop&) {
  show_average();
}

void AverageWeights::show_average() {
  if (options_.in_validation && averaged_ > 0) {
    exchange();
  }
}

void AverageWeights::exchange() {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> raw;
  for (size_t i = 0; i < weights_.size(); ++i) {
    const at::Tensor weight = weights_[i].second.detach();
    if (is_exchanged_) {
      weight.copy_(raw_[i]);
    } else {
      raw.push_back(weight.clone());
      weight.copy_(average_[i].second);
    }
  }
  raw_ = std::move(raw);
  is_exchanged_ = !is_exchanged_;
}

at::Tensor AverageWeights::raw(size_t i) const {
  return is_exchanged_ ? raw_[i] : weights_[i].second.detach();
}

at::Tensor AverageWeights::as_weight(size_t i) const {
  return average_[i].second.to(weights_[i].second.scalar_type());
}

void AverageWeights::on_fit_end(Trainer& trainer, Loop&) {
  if (averaged_ == 0) {
    if (!options_.export_to.empty()) {
      trainer.log().warning("AverageWeights: nothing was averaged yet, and no average is written");
    }
    return;
  }
  if (train_) {
    update_batch_norm(trainer);
  }
  if (!options_.export_to.empty() && trainer.state().writes()) {
    write_average(trainer);
  }
}

void AverageWeights::update_batch_norm(Trainer& trainer) {
  State& state = trainer.state();
  NamedTensors counts;  // of batches, which the raw weights' batch norms have seen
  for (const NamedTensor& buffer : named_buffers(state.model->module())) {
    if (!buffer.second.is_floating_point()) {
      counts.emplace_back(buffer.first, buffer.second.clone());
    }
  }
  const QuietMetrics quiet;
  exchange();
  const auto stream = train_->in_order().stream({}, state.seed);
  const auto forward = [&] {
    std::optional<Batch> batch = stream->next();
    if (batch) {
      forward_pass(trainer, state.backend->stage(std::move(*batch)));
    }
    return batch.has_value();
  };
  try {
    recompute_batch_norms(state.model->module(), forward);
  } catch (...) {
    exchange();
    throw;
  }
  take_buffers();
  exchange();
  load_model_state(state.model->module(), dict_of(counts), /*strict=*/false);
}

/// The model has the average, and its batch norms have new statistics.
void AverageWeights::take_buffers() {
  const at::NoGradGuard no_grad;
  for (size_t i = parameters_; i < weights_.size(); ++i) {
    average_[i].second.copy_(weights_[i].second);
  }
}

void AverageWeights::write_average(Trainer& trainer) const {
  StateDict model = model_state(trainer.state().model->module());
  for (size_t i = 0; i < weights_.size(); ++i) {
    replace(model, weights_[i].second, as_weight(i));
  }
  const std::filesystem::path file = trainer.options().model_dir / options_.export_to;
  write_any(*real_file_system(), file, {{"model", std::move(model)}});
  trainer.log().info("wrote the average of the weights to " + file.string());
}

void AverageWeights::postprocess_checkpoint(Trainer& trainer, StateDict& state) {
  const bool wants_average = options_.save == kInstead && averaged_ > 0;
  StateValue* const own = state.find("callbacks/" + trainer.callbacks().name_of(*this));
  StateValue* const model = state.find("model");
  if (own != nullptr) {
    own->as_dict().set(kIsModel, wants_average);
  }
  for (size_t i = 0; i < weights_.size(); ++i) {
    const auto& [name, average] = average_[i];
    if (model != nullptr && is_exchanged_ != wants_average) {
      replace(model->as_dict(), weights_[i].second, wants_average ? as_weight(i) : raw(i));
    }
    if (own != nullptr && wants_average) {
      own->as_dict().set(name, raw(i));
      if (average.scalar_type() != weights_[i].second.scalar_type()) {
        own->as_dict().set(name_unrounded(name), average);
      }
    }
  }
}

void AverageWeights::preprocess_checkpoint(Trainer& trainer, StateDict& state) {
  StateValue* const own = state.find("callbacks/" + trainer.callbacks().name_of(*this));
  StateValue* const is_model = own != nullptr ? own->as_dict().find(kIsModel) : nullptr;
  StateValue* const model = state.find("model");
  if (is_model != nullptr && is_model->as_bool() && model != nullptr) {
    *is_model = false;
    take_from_model(model->as_dict(), own->as_dict());
  }
  for (const NamedTensor& average : average_) {
    StateValue* const saved = own != nullptr ? own->as_dict().find(average.first) : nullptr;
    if (saved != nullptr && saved->is_tensor()) {  // in half precision before 0.2.0
      *saved = saved->as_tensor().to(average.second.scalar_type());
    }
  }
}

/// Exchanges the average, which is the model of a checkpoint, and the raw weights in `own`.
void AverageWeights::take_from_model(StateDict& model, StateDict& own) const {
  for (const NamedTensor& average : average_) {
    StateValue* const in_model = model.find(average.first);
    StateValue* const raw = own.find(average.first);
    if (in_model == nullptr || raw == nullptr) {
      continue;  // told by those that load it
    }
    const StateValue* const unrounded = own.find(name_unrounded(average.first));
    const at::Tensor averaged = in_model->as_tensor();
    replace(model, averaged, raw->as_tensor());
    *raw = unrounded != nullptr ? unrounded->as_tensor() : averaged;
  }
}

NamedTensors AverageWeights::captured_state() {
  NamedTensors tensors = average_;
  tensors.emplace_back("share", share_);
  return tensors;
}

StateDict AverageWeights::save_state() const {
  return {{"averaged", averaged_}, {kIsModel, false}};
}

void AverageWeights::load_state(const StateDict& state) {
  averaged_ = state.at("averaged").as_int();
}

void register_average_weights(Registry<Callback>& registry) {
  using Options = AverageWeights::Options;
  registry
      .add<AverageWeights>("AverageWeights",
                           "Averages the weights over updates, and validates the average.")
      .key("kind",
           &Options::kind,
           one_of({"ema", "swa"}),
           "an average that forgets (ema), or the mean of all (swa)")
      .key("decay", &Options::decay, below_one(), "share of the average that stays, of ema")
      .key("half_life",
           &Options::half_life,
           greater_than(0),
           "time after which weights count half in the average, instead of decay")
      .key("start", &Options::start, at_least(0), "time before the first averaging")
      .key("every", &Options::every, greater_than(0), "time from one averaging to the next")
      .key("in_validation",
           &Options::in_validation,
           "whether validations and predictions see the average, and not the raw weights")
      .key("save",
           &Options::save,
           one_of({"beside", "instead"}),
           "whether checkpoints have the average with the callback, or as the model")
      .key("update_batch_norm",
           &Options::update_batch_norm,
           "whether batch norms of the average get statistics from a pass at the end of a fit")
      .key("export",
           &Options::export_to,
           "file in model_dir that gets the average when a fit ends; empty: none");
}

}  // namespace rondo
