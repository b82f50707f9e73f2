#include "callbacks/builtin/metric_stopper.h"

#include <fmt/format.h>

#include <utility>

#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

MetricStopper::MetricStopper(std::string name, Watch watch, const char* reason)
    : name_(std::move(name)),
      direction_(name_, std::move(watch.metric), std::move(watch.direction)),
      when_(std::move(watch.when)),
      reason_(reason) {
  detail::require(when_ == "validation" || when_ == "epoch" || when_ == "update",
                  name_ + ".when",
                  R"("validation", "epoch" or "update")",
                  when_);
}

void MetricStopper::post_setup(Trainer& trainer) {
  direction_.guess(trainer);
}

void MetricStopper::on_fit_start(Trainer& trainer, const DataLoader&, const Loaders& val, Loop&) {
  direction_.resolve(trainer, val);
  stop_when_over(trainer);
}

void MetricStopper::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  if (is_followed_now(trainer, when_)) {
    trainer.defer({}, [this, &trainer](const std::vector<at::Tensor>&) { look_now(trainer); });
  }
}

void MetricStopper::run_validation(Trainer& trainer, std::optional<int64_t>, bool) {
  if (when_ == "validation" && trainer.state().plan != nullptr) {
    look_now(trainer);
  }
}

void MetricStopper::look_now(Trainer& trainer) {
  look(trainer.state().timestamp, direction_.newest_value(trainer));
  stop_when_over(trainer);
}

void MetricStopper::stop_when_over(Trainer& trainer) {
  if (is_over()) {
    const std::optional<double> value = trainer.state().last_metrics.number(direction_.metric());
    trainer.log().info(fmt::format("{} ends the run at update {}: {}{}",
                                   name_,
                                   trainer.state().global_step(),
                                   direction_.metric(),
                                   value ? fmt::format(" = {}", *value) : " said so before"));
    trainer.request_stop(reason_);
  }
}

}  // namespace rondo
