#include "callbacks/core/metrics_callback.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <utility>

#include "callbacks/core/evaluator.h"
#include "callbacks/core/virtual_ranks.h"
#include "core/error.h"
#include "metrics/mean.h"
#include "models/forward_error.h"
#include "models/losses/criterion.h"
#include "models/model.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

constexpr const char* kKey = "train_metrics";

/// `output "logits", "label" of the batch`.
std::string needs_of(const Metric& metric) {
  std::vector<std::string> needs;
  for (const std::string& output : metric.needs().outputs) {
    needs.push_back(fmt::format("output \"{}\"", output));
  }
  for (const std::string& tensor : metric.needs().batch) {
    needs.push_back(fmt::format("\"{}\" in the batch", tensor));
  }
  return fmt::format("{}", fmt::join(needs, ", "));
}

void prepare(MetricSet& metrics, const Trainer& trainer) {
  metrics.to(trainer.state().backend->device());
  const Criterion* const loss = trainer.state().model->criterion();
  if (const auto label = loss != nullptr ? loss->ignore_index() : std::nullopt) {
    metrics.ignore(*label);
  }
}

}  // namespace

void MetricsCallback::setup(Trainer& trainer) {
  validation_.add_default(use<Mean>({"loss"}));
  for (const Factory<Metric>& metric : trainer.state().model->metrics()) {
    validation_.add_default(metric);
  }
  for (const Factory<Metric>& metric : trainer.options().metrics) {
    validation_.add(metric);
  }
  for (const Factory<Metric>& metric : trainer.options().train_metrics) {
    training_.add(metric);
  }
  add_evaluators(trainer);
  prepare(training_, trainer);
  prepare(validation_, trainer);
  for (auto& own : own_) {
    prepare(own.second, trainer);
  }
}

void MetricsCallback::add_evaluators(Trainer& trainer) {
  for (const Evaluator* evaluator : evaluators_of(trainer)) {
    const Evaluator::Options& options = evaluator->options();
    if (options.metrics.empty()) {
      continue;
    }
    MetricSet& own = own_[options.loader];
    own.add_default(use<Mean>({"loss"}));
    for (const Factory<Metric>& metric : options.metrics) {
      own.add(metric);
    }
  }
}

const std::vector<MetricSet::Entry>& MetricsCallback::of_training() const {
  return training_.entries();
}

const std::vector<MetricSet::Entry>& MetricsCallback::of_validation(
    const std::string& scope) const {
  const auto own = own_.find(scope);
  return own == own_.end() ? validation_.entries() : own->second.entries();
}

void MetricsCallback::on_train_step_start(Trainer& trainer, Model&, const Batch&) {
  VirtualRanks* const ranks = ranks_of(trainer);
  if (ranks == nullptr || training_.entries().empty() || !trainer.state().position.is_first) {
    return;
  }
  std::vector<at::Tensor> sums;
  for (const NamedTensor& sum : training_.state()) {
    sums.push_back(sum.second);
  }
  ranks->begin_metrics(std::move(sums));
}

void MetricsCallback::on_train_step_end(Trainer& trainer,
                                        Model&,
                                        const Outputs& outputs,
                                        const Batch& batch) {
  training_.update(outputs, batch);
  if (VirtualRanks* const ranks = ranks_of(trainer); ranks && !training_.entries().empty()) {
    ranks->sum_metrics(trainer);
  }
}

void MetricsCallback::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs& outputs, const Batch& batch, int64_t) {
  if (training_.entries().empty()) {
    return;
  }
  training_.note(outputs, batch);
  if (train_batch_.empty()) {
    train_batch_ = to_text(batch);
  }
  if (trainer.state().position.is_last && trainer.is_log_step()) {
    warn_of_unused(trainer, {"training", training_, train_batch_, has_warned_of_training_});
    trainer.log_metrics(training_.values());
    training_.reset();
  }
}

RankRange MetricsCallback::ranks_of_validation(const Trainer& trainer,
                                               const std::string& scope) const {
  const VirtualRanks* const ranks = rondo::ranks_of(trainer);
  const auto own = own_.find(scope);
  const bool are_sums = (own == own_.end() ? validation_ : own->second).are_sums();
  return ranks != nullptr && are_sums ? ranks->range() : RankRange();
}

void MetricsCallback::on_validate_start(Trainer& trainer, Model&, const DataLoader& loader, Loop&) {
  const std::string scope = trainer.metric_log().scope_of(loader);
  const auto own = own_.find(scope);
  current_ = own == own_.end() ? &validation_ : &own->second;
  batch_.clear();
  current_->reset();
  ranks_ = ranks_of_validation(trainer, scope);
  if (ranks_.all > 1) {
    std::vector<at::Tensor> sums;
    for (const NamedTensor& sum : current_->state()) {
      sums.push_back(sum.second);
    }
    sums_.begin(std::move(sums), ranks_);
  }
}

void MetricsCallback::on_validate_batch_start(Trainer&, Model&, const Batch&, int64_t batch_idx) {
  if (ranks_.all > 1) {
    sums_.use(batch_idx % ranks_.all);
  }
}

void MetricsCallback::on_validate_step_end(Trainer&,
                                           Model&,
                                           const Outputs& outputs,
                                           const Batch& batch) {
  current_->update(outputs, batch);
}

void MetricsCallback::on_validate_batch_end(
    Trainer&, Model&, const Outputs& outputs, const Batch& batch, int64_t) {
  current_->note(outputs, batch);
  if (batch_.empty()) {
    batch_ = to_text(batch);
  }
}

void MetricsCallback::sum_over_ranks(Trainer& trainer) {
  if (ranks_.all == 1) {
    return;
  }
  Communicator& communicator = *trainer.state().communicator;
  sums_.finish(communicator);
  std::vector<double> uses = current_->uses();
  at::Tensor all = at::tensor(uses, at::kDouble);
  if (!uses.empty()) {
    communicator.all_reduce(all);
    current_->take_uses(all.data_ptr<double>());
  }
}

void MetricsCallback::on_validate_end(Trainer& trainer, Model&, Loop&) {
  sum_over_ranks(trainer);
  warn_of_unused(trainer, {"a validation", *current_, batch_, has_warned_});
  if (const Metrics values = current_->values(); !values.empty()) {
    trainer.log_metrics(values);
  }
  if (trainer.is_log_step()) {  // a stop may have left batches out: that is no result
    for (const Media& media : current_->media()) {
      trainer.log_media(media);
    }
  }
}

void MetricsCallback::warn_of_unused(Trainer& trainer, const Pass& pass) {
  std::vector<std::string> unused;
  for (const MetricSet::Entry& entry : pass.metrics.entries()) {
    if (!entry.is_used) {
      unused.push_back(fmt::format("{} (needs {})", entry.name, needs_of(*entry.metric)));
    }
  }
  if (!unused.empty() && !pass.batch.empty() && !pass.has_warned) {
    pass.has_warned = true;
    trainer.log().warning(
        fmt::format("{} has no {}: no batch had its inputs. A batch has {}; the model returns a "
                    "loss only if the batch has its target",
                    pass.name,
                    fmt::join(unused, ", no "),
                    pass.batch));
  }
}

void MetricsCallback::on_save_checkpoint(Trainer&, StateDict& state) {
  if (!training_.entries().empty()) {
    state.set(kKey, training_.state_dict());
  }
}

void MetricsCallback::check_checkpoint(Trainer&, const StateDict& state) {
  if (const StateValue* saved = state.find(kKey)) {
    training_.check(saved->as_dict());
  }
}

void MetricsCallback::on_load_checkpoint(Trainer&, const StateDict& state) {
  training_.reset();
  if (const StateValue* saved = state.find(kKey)) {
    training_.load(saved->as_dict());
  }
}

NamedTensors MetricsCallback::captured_state() {
  NamedTensors tensors = validation_.state();
  for (const auto& own : own_) {
    for (const NamedTensor& tensor : own.second.state()) {
      tensors.emplace_back(own.first + "/" + tensor.first, tensor.second);
    }
  }
  for (const NamedTensor& tensor : training_.state()) {
    tensors.emplace_back("train/" + tensor.first, tensor.second);
  }
  return tensors;
}

}  // namespace rondo
