#include "callbacks/builtin/memory_snapshot.h"

#include <fmt/format.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <new>
#include <vector>

#include "core/error.h"
#include "core/process_memory.h"
#include "core/registry.h"
#include "core/report_file.h"
#include "core/require.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

void add(std::vector<NamedBytes>& rows, const std::string& name, const at::Tensor& tensor) {
  if (tensor.defined()) {
    rows.push_back({name, static_cast<int64_t>(tensor.nbytes())});
  }
}

std::vector<NamedBytes> rows_of(const Trainer& trainer) {
  std::vector<NamedBytes> rows;
  for (const auto& parameter : trainer.state().model->module().named_parameters()) {
    add(rows, "parameter " + parameter.key(), parameter.value());
    add(rows, "gradient of " + parameter.key(), parameter.value().grad());
  }
  for (const auto& buffer : trainer.state().model->module().named_buffers()) {
    add(rows, "buffer " + buffer.key(), buffer.value());
  }
  for (const auto& optimizer : trainer.state().optimizers) {
    for (const ParamGroup& group : optimizer->groups()) {
      for (const Parameter& parameter : group.params) {
        for (const NamedTensor& state : parameter.states()) {
          add(rows, state.first + " of " + parameter.name, state.second);
        }
      }
    }
  }
  for (const StepReport& step : trainer.state().backend->reports()) {
    rows.push_back({"results of step " + step.name, step.memory.arena});
    rows.push_back({"batch of step " + step.name, step.memory.inputs});
  }
  std::sort(rows.begin(), rows.end(), [](const NamedBytes& a, const NamedBytes& b) {
    return a.bytes > b.bytes;
  });
  return rows;
}

std::string snapshot_of(const Trainer& trainer) {
  std::string text;
  const auto line = [&](int64_t bytes, const std::string& name) {
    text += fmt::format("{:>16}  {}\n", bytes, name);
  };
  line(resident_bytes().value_or(0), "process");
  line(peak_resident_bytes().value_or(0), "process, at most so far");
  for (const NamedBytes& row : rows_of(trainer)) {
    line(row.bytes, row.name);
  }
  return text;
}

/// LibTorch's allocators throw errors of their own.
bool is_want_of_memory(const std::exception_ptr& error) {
  const std::string what = describe(error);
  return what.find("bad_alloc") != std::string::npos ||
         what.find("out of memory") != std::string::npos ||
         what.find("can't allocate memory") != std::string::npos ||
         what.find("not enough memory") != std::string::npos;
}

}  // namespace

MemorySnapshot::MemorySnapshot(const Options& options) : options_(options) {
  detail::require(options.after >= 1, "MemorySnapshot.after", ">= 1", options.after);
}

void MemorySnapshot::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  const State& state = trainer.state();
  if (state.position.is_last && state.global_step() == options_.after) {
    write_report(trainer.log(), state.artifact_dir / "memory_snapshot.txt", snapshot_of(trainer));
  }
}

void MemorySnapshot::on_fit_exception(Trainer& trainer, std::exception_ptr error) {
  if (is_want_of_memory(error)) {
    const std::filesystem::path file = trainer.state().artifact_dir / "out_of_memory.txt";
    write_report(trainer.log(), file, snapshot_of(trainer));
    trainer.log().error(fmt::format("memory ran out; {} lists what used it", file.string()));
  }
}

void register_memory_snapshot(Registry<Callback>& registry) {
  registry
      .add<MemorySnapshot>("MemorySnapshot",
                           "Writes what takes memory after an update, and when memory runs out.")
      .key("after", &MemorySnapshot::Options::after, at_least(1), "the update");
}

}  // namespace rondo
