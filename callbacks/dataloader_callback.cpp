#include "callbacks/dataloader_callback.h"

#include "callbacks/grad_accum_callback.h"
#include "trainer/trainer.h"

namespace rondo {

void DataloaderCallback::on_enter_fit(
    Trainer& trainer, Cleanup& cleanup, const DataLoader& train, const Loaders&, Loop&) {
  loader_ = train;
  const Timestamp& time = trainer.state().timestamp;
  start_ = {time.epoch, time.sample_in_epoch};
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
  stream_ = std::make_unique<GroupedStream>(train, group_size, trainer.state().seed, start_);
}

GroupedBatch DataloaderCallback::next_batch() {
  return stream_->next();
}

void DataloaderCallback::on_save_checkpoint(Trainer& trainer, StateDict& state) {
  if (loader_) {
    const Timestamp& time = trainer.state().timestamp;
    state.set("dataloader", StateDict{{"epoch", time.epoch}, {"sample", time.sample_in_epoch}});
  }
}

void DataloaderCallback::check_checkpoint(Trainer&, const StateDict& state) {
  if (const StateValue* saved = state.find("dataloader")) {
    saved->as_dict().at("epoch").as_int();
    saved->as_dict().at("sample").as_int();
  }
}

void DataloaderCallback::on_load_checkpoint(Trainer& trainer, const StateDict& state) {
  if (!loader_) {
    return;  // a validation does not touch the training data
  }
  const StateValue* saved = state.find("dataloader");
  if (saved == nullptr) {
    trainer.log().info(
        "the checkpoint holds no data position: training starts from the beginning of its data");
    start_ = {};
    return;
  }
  start_ = {saved->as_dict().at("epoch").as_int(), saved->as_dict().at("sample").as_int()};
}

}  // namespace rondo
