#include "callbacks/builtin/memory_monitor.h"

#include <cmath>
#include <cstdint>

#include "core/process_memory.h"
#include "core/registry.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

double with_five_digits(double value) {
  const double scale = std::pow(10.0, 4.0 - std::floor(std::log10(value)));
  return std::round(value * scale) / scale;
}

double gigabytes(int64_t bytes) {
  return with_five_digits(static_cast<double>(bytes) / 1e9);
}

}  // namespace

void MemoryMonitor::setup(Trainer& trainer) {
  if (!resident_bytes()) {
    trainer.log().warning("MemoryMonitor: this system does not report memory use");
  }
}

void MemoryMonitor::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  if (!trainer.state().position.is_last || !trainer.is_log_step()) {
    return;
  }
  const auto current = resident_bytes();
  const auto peak = peak_resident_bytes();
  if (current && peak) {
    trainer.log_metrics({{"memory/current_resident", gigabytes(*current)},
                         {"memory/peak_resident", gigabytes(*peak)}});
  }
}

void register_memory_monitor(Registry<Callback>& registry) {
  registry.add<MemoryMonitor>("MemoryMonitor", "Logs how much memory the process has.");
}

}  // namespace rondo
