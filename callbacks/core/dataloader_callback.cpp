#include "callbacks/core/dataloader_callback.h"

#include <fmt/format.h>

#include "callbacks/core/grad_accum_callback.h"
#include "callbacks/core/run_plan.h"
#include "core/error.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

std::string order_of(const DataLoader& loader, uint64_t run_seed) {
  const LoaderOptions& options = loader.options();
  const uint64_t seed = options.shuffle_seed.value_or(run_seed);
  if (!options.draw_by.empty() || !options.balance_by.empty()) {
    return fmt::format("drawn by {}{} with seed {}", options.draw_by, options.balance_by, seed);
  }
  std::string order = options.shuffle ? fmt::format("shuffled with seed {}", seed) : "not shuffled";
  if (options.max_tokens) {
    order += fmt::format(", in buckets of {} tokens", *options.max_tokens);
  } else if (options.buckets) {
    order += fmt::format(", in buckets of {} samples", options.batch_size);
  }
  return order;
}

/// \throws UsageError  when there are more processes than samples in a batch
void require_samples(const DataLoader& train, const Trainer& trainer) {
  const Communicator& communicator = *trainer.state().communicator;
  const LoaderOptions& options = train.options();
  if (!options.max_tokens && options.batch_size < communicator.world_size()) {
    throw UsageError(
        fmt::format("{}: a batch has {} samples, and there are {} processes to share them: set "
                    "batch_size to {} or more; it counts the samples of all processes",
                    train.name(),
                    options.batch_size,
                    communicator.world_size(),
                    communicator.world_size()));
  }
}

/// The name in a checkpoint of what the training data learnt: it stands next to the position.
std::string name_of(const DataLoader& loader) {
  const std::string& label = loader.label();
  const bool is_taken = label == "epoch" || label == "sample" || label == "order" ||
                        label == "samples" || label == "state" || label == "is_in_pass";
  return label.empty() ? "train" : label + (is_taken ? "_data" : "");
}

/// What training data learnt that a checkpoint holds: under the loader's name, or the only one.
const StateDict* fitted_in(const StateDict& state, const std::optional<DataLoader>& loader) {
  const StateValue* const section = state.find("dataloader");
  if (section == nullptr) {
    return nullptr;
  }
  const StateDict* only = nullptr;
  for (const StateDict::Item& item : section->as_dict().items()) {
    const StateValue* const fitted =
        item.second.is_dict() ? item.second.as_dict().find("fitted") : nullptr;
    if (fitted != nullptr && (only == nullptr || (loader && item.first == name_of(*loader)))) {
      only = &fitted->as_dict();
    }
  }
  return only;
}

}  // namespace

void DataloaderCallback::on_enter_fit(
    Trainer& trainer, Cleanup& cleanup, const DataLoader& train, const Loaders&, Loop&) {
  loader_ = train;
  const Timestamp& time = trainer.state().timestamp;
  start_ = {time.epoch, time.sample_in_epoch};
  has_no_position_ = false;
  since_first_batch_.reset();
  waited_ = 0.0;
  has_advised_ = false;
  cleanup.push([this](const std::exception_ptr&) {
    stream_.reset();
    loader_.reset();
  });
}

void DataloaderCallback::on_fit_start(Trainer& trainer,
                                      const DataLoader& train,
                                      const Loaders& val,
                                      Loop&) {
  fitted_ = train.fitted();
  for (const DataLoader& loader : val) {
    if (loader.is_built()) {
      prepare(trainer, loader);  // what does not go together ends the fit before its first update
    }
  }
  prepare(trainer, train);
  auto& grad_accum = trainer.slot<GradAccumCallback>();
  grad_accum.choose_size(trainer, train, val);
  const GroupOptions groups = grad_accum.groups_of(trainer);
  require_samples(train, trainer);
  Timestamp& time = trainer.state().timestamp;
  if (has_no_position_) {
    time.restart_epoch();
    start_ = {time.epoch, 0};
  }
  stream_ = std::make_unique<GroupedStream>(train, groups, trainer.state().seed, start_);
  has_counts_ = !train.source().counts().empty();
  warn_of_random_numbers(trainer.log(), train);
  if (stream_->first_epoch() > time.epoch && !trainer.state().plan->is_over(time)) {
    trainer.log().info(
        fmt::format("epoch {} ends with the {} samples that were consumed before the checkpoint: "
                    "the rest does not fill a batch",
                    time.epoch,
                    time.sample_in_epoch));
    time.advance_epoch();
  }
}

GroupedBatch DataloaderCallback::next_batch() {
  if (!since_first_batch_) {  // what it takes to begin is no sign of a slow loader
    GroupedBatch first = stream_->next();
    since_first_batch_.emplace();
    return first;
  }
  const Stopwatch waiting(waited_);
  return stream_->next();
}

void DataloaderCallback::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  if (!has_counts_ || !trainer.is_log_step()) {
    return;
  }
  Metrics values;
  for (const auto& [name, count] : loader_->source().counts()) {
    values.set("data/" + name, count);
  }
  trainer.log_metrics(values);
}

void DataloaderCallback::on_train_end(Trainer& trainer, Model&, Loop&, int64_t) {
  if (has_advised_ || !since_first_batch_) {
    return;
  }
  if (const auto advice = slow_loader_advice(*loader_, waited_, since_first_batch_->seconds())) {
    trainer.log().warning(*advice);
    has_advised_ = true;
  }
}

void DataloaderCallback::save_own_state(StateDict& position) const {
  const auto* const data = dynamic_cast<const IterableDataset*>(&loader_->source());
  if (data == nullptr || !data->has_state() || !stream_) {
    return;
  }
  position.set("state", data->save_state());
  position.set("is_in_pass", !stream_->is_between_passes());
}

void DataloaderCallback::load_own_state(const StateDict& position) {
  if (const StateValue* const state = position.find("state")) {
    loader_->load_state(state->as_dict(), position.at("is_in_pass").as_bool());
  }
}

void DataloaderCallback::on_save_checkpoint(Trainer& trainer, StateDict& state) {
  if (loader_) {
    const Timestamp& time = trainer.state().timestamp;
    StateDict position{{"epoch", time.epoch},
                       {"sample", time.sample_in_epoch},
                       {"order", order_of(*loader_, trainer.state().seed)}};
    if (const auto samples = loader_->samples()) {
      position.set("samples", *samples);
    }
    if (StateDict fitted = loader_->fitted(); !fitted.empty()) {
      position.set(name_of(*loader_),
                   StateDict{{"fitted", std::move(fitted)}, {"facts", to_state(loader_->facts())}});
    }
    save_own_state(position);
    state.set("dataloader", std::move(position));
  }
}

void DataloaderCallback::prepare(const Trainer& trainer, const DataLoader& loader) const {
  if (!fitted_.empty()) {
    loader.take_fitted(fitted_);
  }
  const bool is_aside = trainer.options().leaves_out != nullptr;  // its log is not the run's
  if (!is_aside) {
    tell_notes(trainer.log(), loader);
  }
}

void DataloaderCallback::check_checkpoint(Trainer&, const StateDict& state) {
  const StateDict* const fitted = fitted_in(state, loader_);
  if (fitted != nullptr && loader_) {
    loader_->take_fitted(*fitted);  // harmless when the load fails: no sample was taken yet
  }
  if (const StateValue* saved = state.find("dataloader")) {
    saved->as_dict().at("epoch").as_int();
    saved->as_dict().at("sample").as_int();
    if (const StateValue* order = saved->as_dict().find("order")) {
      order->as_string();
    }
    if (const StateValue* samples = saved->as_dict().find("samples")) {
      samples->as_int();
    }
  }
}

void DataloaderCallback::on_load_checkpoint(Trainer& trainer, const StateDict& state) {
  if (!loader_) {  // an evaluation does not touch the training data
    const StateDict* const fitted = fitted_in(state, loader_);
    fitted_ = fitted != nullptr ? *fitted : StateDict();
    return;
  }
  const StateValue* saved = state.find("dataloader");
  if (saved == nullptr) {
    trainer.log().info(
        "the checkpoint holds no data position: its epoch starts from the beginning of the data");
    has_no_position_ = true;
    return;
  }
  start_ = {saved->as_dict().at("epoch").as_int(), saved->as_dict().at("sample").as_int()};
  load_own_state(saved->as_dict());
  const StateValue* const order = saved->as_dict().find("order");
  const std::string now = order_of(*loader_, trainer.state().seed);
  if (order != nullptr && start_.sample > 0 && order->as_string() != now) {
    trainer.log().warning(
        fmt::format("the checkpoint's data was {}, now it is {}: in the rest of epoch {} some "
                    "samples are repeated and others are missed",
                    order->as_string(),
                    now,
                    start_.epoch));
  }
  const StateValue* const samples = saved->as_dict().find("samples");
  const std::optional<int64_t> samples_now = loader_->samples();
  if (samples != nullptr && samples_now && samples->as_int() != *samples_now) {
    trainer.log().warning(fmt::format(
        "the checkpoint's data had {} samples, now it has {}: the run continues, but differs from "
        "the saved one; in the rest of epoch {} some samples may be repeated and others missed",
        samples->as_int(),
        *samples_now,
        start_.epoch));
  }
}

}  // namespace rondo
