#include "loops/validation_run.h"

#include "callbacks/core/evaluator.h"
#include "trainer/trainer.h"

namespace rondo {

ValidationRun::ValidationRun(Trainer& trainer,
                             const Loaders& loaders,
                             Loop& loop,
                             std::optional<int64_t> loop_idx,
                             bool is_last)
    : trainer_(trainer), loaders_(loaders), loop_(loop), loop_idx_(loop_idx), is_last_(is_last) {}

bool ValidationRun::advance() {
  if (!stage_ && !start_next()) {
    return false;
  }
  if (stage_ && !stage_->advance()) {
    stage_->end();
    stage_.reset();
  }
  return true;
}

bool ValidationRun::start_next() {
  if (trainer_.stops_now()) {
    return false;
  }
  if (next_ == loaders_.size()) {
    trainer_.call(hooks::run_validation, loop_idx_, is_last_);
    return false;
  }
  const DataLoader& loader = loaders_[next_++];
  const Evaluator* const evaluator = evaluator_of(trainer_, loader);
  if (evaluator != nullptr && !evaluator->runs(loop_idx_, is_last_)) {
    return true;
  }
  stage_ = std::make_unique<ValidateStage>(trainer_, loader, loop_, LoadFrom::nothing());
  stage_->begin();
  return true;
}

std::exception_ptr ValidationRun::fail(std::exception_ptr error) {
  if (stage_) {
    error = stage_->fail(std::move(error));
    stage_.reset();
  }
  return error;
}

}  // namespace rondo
