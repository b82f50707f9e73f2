#include "callbacks/memory_monitor.h"

#include <cmath>
#include <fstream>
#include <optional>
#include <string>

#include "core/registry.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

double with_five_digits(double value) {
  const double scale = std::pow(10.0, 4.0 - std::floor(std::log10(value)));
  return std::round(value * scale) / scale;
}

/// GB of a line such as "VmRSS:   123456 kB" of /proc/self/status; nothing without it.
std::optional<double> gigabytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field + ":", 0) == 0) {
      constexpr double kKiloByte = 1024.0;  // what the kernel calls kB
      const double kilobytes = std::strtod(line.c_str() + field.size() + 1, nullptr);
      return with_five_digits(kilobytes * kKiloByte / 1e9);
    }
  }
  return std::nullopt;
}

}  // namespace

void MemoryMonitor::setup(Trainer& trainer) {
  if (!gigabytes("VmRSS")) {
    trainer.log().warning("MemoryMonitor: this system does not tell how much memory is used");
  }
}

void MemoryMonitor::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  if (!trainer.state().phase.is_last || !trainer.is_log_step()) {
    return;
  }
  const auto current = gigabytes("VmRSS");
  const auto peak = gigabytes("VmHWM");
  if (current && peak) {
    trainer.log_metrics({{"memory/current_resident", *current}, {"memory/peak_resident", *peak}});
  }
}

void register_memory_monitor(Registry<Callback>& registry) {
  registry.add<MemoryMonitor>("MemoryMonitor", "Logs how much memory the process has.");
}

}  // namespace rondo
