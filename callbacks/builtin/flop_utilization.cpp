#include "callbacks/builtin/flop_utilization.h"

#include <fmt/format.h>

#include "backends/machine_peak.h"
#include "core/registry.h"
#include "tracing/traced_backend.h"
#include "trainer/trainer.h"

namespace rondo {

void FlopUtilization::on_train_start(Trainer&, Model&, const DataLoader&, Loop&, int64_t) {
  last_.reset();  // a validation between stages did work, too
}

void FlopUtilization::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  const auto* const backend = dynamic_cast<const TracedBackend*>(trainer.state().backend.get());
  if (backend == nullptr || !trainer.state().position.is_last ||
      (last_ && !trainer.is_log_step())) {
    return;
  }
  const Point now{backend->work_done(), trainer.state().timestamp.total_seconds};
  if (now.work.bytes == 0.0) {
    return;  // nothing was replayed yet
  }
  if (last_ && now.seconds > last_->seconds) {
    log_since(*last_, now, trainer);
  }
  last_ = now;
}

void FlopUtilization::log_since(const Point& before, const Point& now, Trainer& trainer) {
  measure(trainer, now.work);
  const double seconds = now.seconds - before.seconds;
  double at_peak = 0.0;  // seconds that the machine would take at its best
  for (const auto& [type, flops] : now.work.flops) {
    const auto known = before.work.flops.find(type);
    at_peak += (flops - (known == before.work.flops.end() ? 0.0 : known->second)) / peak_.at(type);
  }
  const double flops = now.work.all_flops() - before.work.all_flops();
  const double bytes_per_sec = (now.work.bytes - before.work.bytes) / seconds;
  trainer.log_metrics({{"throughput/flops_per_sec", flops / seconds},
                       {"throughput/flops_share", at_peak / seconds},
                       {"throughput/bytes_per_sec", bytes_per_sec},
                       {"throughput/bandwidth_share", bytes_per_sec / *peak_bytes_}});
  has_logged_ = true;
}

// Once for each type of number.
void FlopUtilization::measure(const Trainer& trainer, const WorkDone& work) {
  if (!peak_bytes_) {
    peak_bytes_ = peak_bytes_per_sec();
    trainer.log().info(fmt::format("measured: this machine copies {:.1f} GB/s (read and written)",
                                   *peak_bytes_ * 1e-9));
  }
  for (const auto& of_type : work.flops) {
    if (peak_.count(of_type.first) == 0) {
      const double peak = peak_flops_per_sec(of_type.first);
      peak_[of_type.first] = peak;
      trainer.log().info(fmt::format("measured: products of {} reach {:.1f} GFLOP/s",
                                     c10::toString(of_type.first),
                                     peak * 1e-9));
    }
  }
}

void FlopUtilization::on_fit_end(Trainer& trainer, Loop&) {
  if (!has_logged_) {
    trainer.log().warning(
        "FlopUtilization logged nothing: it counts the operators of recorded steps, and there were "
        "none or too few");
  }
}

void register_flop_utilization(Registry<Callback>& registry) {
  registry.add<FlopUtilization>(
      "FlopUtilization", "Logs FLOP and bandwidth rates, and their shares of the machine's peak.");
}

}  // namespace rondo
