#include "callbacks/event.h"

#include <algorithm>
#include <string_view>

namespace rondo {

namespace {

struct Info {
  Event event;
  const char* name;
  HookSite site;
};

constexpr Info kEvents[] = {
    {Event::Init, "init", HookSite::Host},
    {Event::BeforeLoad, "before_load", HookSite::Host},
    {Event::AfterLoad, "after_load", HookSite::Host},
    {Event::FitStart, "fit_start", HookSite::Host},
    {Event::IterationStart, "iteration_start", HookSite::Host},
    {Event::EpochStart, "epoch_start", HookSite::Host},
    {Event::BeforeDataloader, "before_dataloader", HookSite::Host},
    {Event::AfterDataloader, "after_dataloader", HookSite::Host},
    {Event::BatchStart, "batch_start", HookSite::Host},
    {Event::BeforeTrainBatch, "before_train_batch", HookSite::Step},
    {Event::BeforeForward, "before_forward", HookSite::Step},
    {Event::AfterForward, "after_forward", HookSite::Step},
    {Event::BeforeLoss, "before_loss", HookSite::Step},
    {Event::AfterLoss, "after_loss", HookSite::Step},
    {Event::BeforeBackward, "before_backward", HookSite::Step},
    {Event::AfterBackward, "after_backward", HookSite::Step},
    {Event::AfterTrainBatch, "after_train_batch", HookSite::Step},
    {Event::BatchEnd, "batch_end", HookSite::Host},
    {Event::BatchCheckpoint, "batch_checkpoint", HookSite::Host},
    {Event::EpochEnd, "epoch_end", HookSite::Host},
    {Event::EpochCheckpoint, "epoch_checkpoint", HookSite::Host},
    {Event::IterationEnd, "iteration_end", HookSite::Host},
    {Event::IterationCheckpoint, "iteration_checkpoint", HookSite::Host},
    {Event::FitEnd, "fit_end", HookSite::Host},
    {Event::EvalBeforeAll, "eval_before_all", HookSite::Host},
    {Event::EvalStart, "eval_start", HookSite::Host},
    {Event::EvalBatchStart, "eval_batch_start", HookSite::Host},
    {Event::EvalBeforeForward, "eval_before_forward", HookSite::Step},
    {Event::EvalAfterForward, "eval_after_forward", HookSite::Step},
    {Event::EvalBatchEnd, "eval_batch_end", HookSite::Host},
    {Event::EvalEnd, "eval_end", HookSite::Host},
    {Event::EvalAfterAll, "eval_after_all", HookSite::Host},
    {Event::EvalStandaloneStart, "eval_standalone_start", HookSite::Host},
    {Event::EvalStandaloneEnd, "eval_standalone_end", HookSite::Host},
    {Event::PredictStart, "predict_start", HookSite::Host},
    {Event::PredictBatchStart, "predict_batch_start", HookSite::Host},
    {Event::PredictBeforeForward, "predict_before_forward", HookSite::Step},
    {Event::PredictAfterForward, "predict_after_forward", HookSite::Step},
    {Event::PredictBatchEnd, "predict_batch_end", HookSite::Host},
    {Event::PredictEnd, "predict_end", HookSite::Host},
};

const Info& info_of(Event event) {
  return kEvents[static_cast<size_t>(event)];
}

}  // namespace

const std::vector<Event>& all_events() {
  static const std::vector<Event> kAll = [] {
    std::vector<Event> all;
    std::transform(
        std::begin(kEvents), std::end(kEvents), std::back_inserter(all), [](const Info& info) {
          return info.event;
        });
    return all;
  }();
  return kAll;
}

const char* name_of(Event event) {
  return info_of(event).name;
}

HookSite site_of(Event event) {
  return info_of(event).site;
}

bool is_after(Event event) {
  return std::string_view(name_of(event)).rfind("after_", 0) == 0;
}

}  // namespace rondo
