#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "backends/executor.h"
#include "tracing/graphs/device_graphs.h"
#include "tracing/graphs/mirrored_numbers.h"
#include "tracing/program/run_instruction.h"
#include "tracing/program/step_program.h"

namespace rondo {

/// Replays a step on a device: the program is walked once while the device records its launches,
/// and each run launches them. Host calls split the recording; they run in between, on the live
/// tensors. Batches are copied to the memory that was recorded, and numbers on the host that the
/// step reads are mirrored on the device.
class GraphExecutor final : public Executor {
 public:
  /// \param graphs  of the program's device; shared by the steps of a backend
  /// \throws CaptureError  when the program does on the host what no launch repeats
  /// \throws c10::Error  when the device cannot record it
  GraphExecutor(StepProgram program, std::shared_ptr<DeviceGraphs> graphs, c10::Device device);

  const std::vector<at::Tensor>& run(const Batch& batch, DueSet due) override;

  StepMemory memory() const override { return memory_; }

  std::string to_text() const override;

 private:
  /// Instructions that are launched together, and the host call behind them, if any.
  struct Segment {
    size_t begin;
    size_t end;
    std::unique_ptr<DeviceGraph> graph;  ///< null when there are none
    const Instruction* host_call = nullptr;
  };

  void object_to_host_work() const;
  void object_to_host_work(const Instruction& instruction) const;
  void place_inputs();
  void place_outside();
  void find_last_uses();
  void cut_into_segments();
  void capture(Segment& segment);
  void place_live();
  void bind(const Batch& batch);

  const Slot& slot(SlotId id) const { return program_.slots[static_cast<size_t>(id)]; }

  StepProgram program_;
  std::shared_ptr<DeviceGraphs> graphs_;
  c10::Device device_;
  SlotTensors tensors_;         // that the recording walks on
  SlotTensors live_;            // the same, with numbers of the host instead of mirrors
  std::vector<SlotId> inputs_;  // with elements
  std::vector<std::vector<SlotId>> last_uses_;  // by instruction
  MirroredNumbers numbers_;
  std::vector<Segment> segments_;
  std::vector<at::Tensor> results_;
  StepMemory memory_;
};

}  // namespace rondo
