#include "callbacks/builtin/system_metrics_monitor.h"

#include <sys/resource.h>
#include <sys/statvfs.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "core/registry.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// Bytes by name; empty on a system without the file. Source: proc(5).
std::map<std::string, double> memory_of_machine() {
  std::map<std::string, double> sizes;
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::string unit;
  for (double kilobytes = 0.0; file >> name >> kilobytes; std::getline(file, unit)) {
    sizes[name.substr(0, name.size() - 1)] = kilobytes * 1024.0;
  }
  return sizes;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

SystemMetricsMonitor::Times SystemMetricsMonitor::times_now() {
  Times times;
  std::ifstream file("/proc/stat");
  std::string name;
  file >> name;  // "cpu", all cores; user, nice, system, idle, iowait, irq, softirq, steal
  double ticks = 0.0;
  for (int i = 0; i < 8 && file >> ticks; ++i) {
    const bool is_idle = i == 3 || i == 4;
    times.all += ticks;
    times.busy += is_idle ? 0.0 : ticks;
  }
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  times.process = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  times.clock = std::chrono::duration<double>(since).count();
  return times;
}

void SystemMetricsMonitor::on_fit_start(Trainer& trainer,
                                        const DataLoader&,
                                        const Loaders&,
                                        Loop&) {
  before_ = times_now();
  const c10::Device device = trainer.state().backend->device();
  if (!device.is_cuda() || gpu_) {
    return;
  }
  gpu_.emplace(device.has_index() ? device.index() : 0);
  if (!gpu_->problem().empty()) {
    trainer.log().warning("SystemMetricsMonitor logs nothing of the GPU: " + gpu_->problem());
  }
}

void SystemMetricsMonitor::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  if (!trainer.state().position.is_last || !trainer.is_log_step()) {
    return;
  }
  const Times now = times_now();
  Metrics values;
  if (now.all > before_.all) {
    values.set("system/cpu_percent", 100.0 * (now.busy - before_.busy) / (now.all - before_.all));
  }
  if (now.clock > before_.clock) {
    values.set("system/process_cpu_percent",
               100.0 * (now.process - before_.process) / (now.clock - before_.clock));
  }
  before_ = now;
  const std::map<std::string, double> memory = memory_of_machine();
  const auto total = memory.find("MemTotal");
  const auto available = memory.find("MemAvailable");
  if (total != memory.end() && available != memory.end()) {
    const double used = total->second - available->second;
    values.set("system/memory_used_gb", used / 1e9);
    values.set("system/memory_percent", 100.0 * used / total->second);
  }
  struct statvfs disk = {};
  if (::statvfs(trainer.options().model_dir.c_str(), &disk) == 0) {
    values.set("system/disk_free_gb",
               static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize) / 1e9);
  }
  double load = 0.0;
  if (::getloadavg(&load, 1) == 1) {
    values.set("system/load", load);
  }
  if (gpu_) {
    for (const Metrics::Item& item : gpu_->read().items()) {
      values.set("system/" + item.first, item.second);
    }
  }
  trainer.log_metrics(values);
}

void register_system_metrics_monitor(Registry<Callback>& registry) {
  registry.add<SystemMetricsMonitor>("SystemMetricsMonitor",
                                     "Logs how busy processor, memory, disk and GPU are.");
}

}  // namespace rondo
