#include "callbacks/dataloader_callback.h"

#include <fmt/format.h>

#include "callbacks/grad_accum_callback.h"
#include "loops/run_plan.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

std::string order_of(const DataLoader& loader, uint64_t run_seed) {
  const LoaderOptions& options = loader.options();
  return options.shuffle
             ? fmt::format("shuffled with seed {}", options.shuffle_seed.value_or(run_seed))
             : "not shuffled";
}

/// Samples of a pass, where that is known.
std::optional<int64_t> samples_of(const DataLoader& loader) {
  const DataSource& source = loader.source();
  if (const auto* indexed = dynamic_cast<const Dataset*>(&source)) {
    return indexed->size();
  }
  const auto* sequential = dynamic_cast<const IterableDataset*>(&source);
  return sequential != nullptr ? sequential->size() : std::nullopt;
}

}  // namespace

void DataloaderCallback::on_enter_fit(
    Trainer& trainer, Cleanup& cleanup, const DataLoader& train, const Loaders&, Loop&) {
  loader_ = train;
  const Timestamp& time = trainer.state().timestamp;
  start_ = {time.epoch, time.sample_in_epoch};
  has_no_position_ = false;
  cleanup.push([this](const std::exception_ptr&) {
    stream_.reset();
    loader_.reset();
  });
}

void DataloaderCallback::on_fit_start(Trainer& trainer,
                                      const DataLoader& train,
                                      const Loaders&,
                                      Loop&) {
  const int64_t group_size = trainer.slot<GradAccumCallback>("grad_accum").steps();
  Timestamp& time = trainer.state().timestamp;
  if (has_no_position_) {
    time.restart_epoch();
    start_ = {time.epoch, 0};
  }
  stream_ = std::make_unique<GroupedStream>(train, group_size, trainer.state().seed, start_);
  warn_of_random_numbers(trainer.log(), train);
  if (stream_->first_epoch() > time.epoch && !trainer.state().plan->is_over(time)) {
    trainer.log().info(fmt::format(
        "epoch {} ends with the {} samples that were consumed before the checkpoint: what is left "
        "of it makes no batch",
        time.epoch,
        time.sample_in_epoch));
    time.advance_epoch();
  }
}

GroupedBatch DataloaderCallback::next_batch() {
  return stream_->next();
}

void DataloaderCallback::on_save_checkpoint(Trainer& trainer, StateDict& state) {
  if (loader_) {
    const Timestamp& time = trainer.state().timestamp;
    StateDict position{{"epoch", time.epoch},
                       {"sample", time.sample_in_epoch},
                       {"order", order_of(*loader_, trainer.state().seed)}};
    if (const auto samples = samples_of(*loader_)) {
      position.set("samples", *samples);
    }
    state.set("dataloader", std::move(position));
  }
}

void DataloaderCallback::check_checkpoint(Trainer&, const StateDict& state) {
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
  if (!loader_) {
    return;  // a validation does not touch the training data
  }
  const StateValue* saved = state.find("dataloader");
  if (saved == nullptr) {
    trainer.log().info(
        "the checkpoint holds no data position: its epoch starts from the beginning of the data");
    has_no_position_ = true;
    return;
  }
  start_ = {saved->as_dict().at("epoch").as_int(), saved->as_dict().at("sample").as_int()};
  const StateValue* const order = saved->as_dict().find("order");
  const std::string now = order_of(*loader_, trainer.state().seed);
  if (order != nullptr && start_.sample > 0 && order->as_string() != now) {
    trainer.log().warning(fmt::format(
        "the data of the checkpoint was {}, it is {} now: in what is left of epoch {} some samples "
        "come a second time, others not at all",
        order->as_string(),
        now,
        start_.epoch));
  }
  const StateValue* const samples = saved->as_dict().find("samples");
  const std::optional<int64_t> samples_now = samples_of(*loader_);
  if (samples != nullptr && samples_now && samples->as_int() != *samples_now) {
    trainer.log().warning(fmt::format(
        "the data of the checkpoint had {} samples, it has {} now: the run goes on, but it is not "
        "the one that was saved; in what is left of epoch {} some samples may come a second time, "
        "others not at all",
        samples->as_int(),
        *samples_now,
        start_.epoch));
  }
}

}  // namespace rondo
