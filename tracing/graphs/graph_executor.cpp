#include "tracing/graphs/graph_executor.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "tracing/program/kernels_only.h"
#include "tracing/program/storages.h"

namespace rondo {

namespace {

// As much memory as the slot reaches, laid out as it was recorded: later views count from its
// start.
at::Tensor memory_like(const Slot& slot) {
  const at::Tensor bytes =
      at::empty({extent_of(slot)}, at::TensorOptions(at::kByte).device(slot.device));
  return at::empty({0}, at::TensorOptions(slot.dtype).device(slot.device))
      .set_(bytes.storage(), slot.offset, slot.sizes, slot.strides);
}

}  // namespace

GraphExecutor::GraphExecutor(StepProgram program,
                             std::shared_ptr<DeviceGraphs> graphs,
                             c10::Device device)
    : program_(std::move(program)),
      graphs_(std::move(graphs)),
      device_(device),
      tensors_(program_.slots.size()),
      numbers_(device) {
  const KernelsOnly scope;
  object_to_host_work();
  place_inputs();
  place_outside();
  find_last_uses();
  numbers_.update(*graphs_);
  cut_into_segments();
  for (Segment& segment : segments_) {
    capture(segment);
  }
  place_live();
  const auto add_result = [&](SlotId id) { results_.push_back(live_[static_cast<size_t>(id)]); };
  for (const auto& output : program_.outputs) {
    add_result(output.second);
  }
  for (const ClosureOutput& closure : program_.closures) {
    std::for_each(closure.tensors.begin(), closure.tensors.end(), add_result);
  }
}

void GraphExecutor::object_to_host_work() const {
  for (const Instruction& instruction : program_.instructions) {
    if (!is_host_call(instruction)) {
      object_to_host_work(instruction);
    }
  }
}

// A launch repeats what a device does, with the numbers of the host as they were.
void GraphExecutor::object_to_host_work(const Instruction& instruction) const {
  const auto object = [&](const char* what) {
    throw CaptureError(rondo::to_text(instruction) + ' ' + what);
  };
  if (instruction.is_opaque) {
    object("may do on the host what a graph of the device does not repeat");
  }
  if (instruction.draws_random && !is_on(program_, instruction, device_.type())) {
    object("draws random numbers on the host");
  }
  for (const SlotId id : instruction.writes) {
    if (id != kNoTensor && slot(id).device.is_cpu() && slot(id).kind != SlotKind::Produced) {
      object("writes a tensor on the host; keep it on the device");
    }
  }
  for_each_slot(instruction.arguments, [&](SlotId id) {
    if (slot(id).device.is_cpu() && slot(id).kind == SlotKind::Captured && numel(slot(id)) != 1) {
      object("reads more than a number from the host; keep the tensor on the device");
    }
  });
}

void GraphExecutor::place_inputs() {
  for (size_t i = 0; i < program_.slots.size(); ++i) {
    const Slot& input = program_.slots[i];
    if (input.kind == SlotKind::Input) {
      tensors_[i] = memory_like(input).zero_();  // zeros are indices that every table has
      memory_.inputs += extent_of(input);
      if (numel(input) > 0) {
        inputs_.push_back(static_cast<SlotId>(i));
      }
    }
  }
}

void GraphExecutor::place_outside() {
  std::vector<bool> is_read(program_.slots.size(), false);
  for (const Instruction& instruction : program_.instructions) {
    if (!is_host_call(instruction)) {
      for_each_slot(instruction.arguments,
                    [&](SlotId id) { is_read[static_cast<size_t>(id)] = true; });
    }
  }
  std::vector<size_t> mirrored;
  for (size_t i = 0; i < program_.slots.size(); ++i) {
    const Slot& outside = program_.slots[i];
    if (outside.kind != SlotKind::Captured && outside.kind != SlotKind::Constant) {
      continue;
    }
    const bool is_large = outside.device.is_cpu() && numel(outside) != 1 && is_read[i];
    tensors_[i] = is_large ? outside.value.to(device_) : outside.value;  // only constants
    if (outside.kind == SlotKind::Captured && outside.device.is_cpu() && is_read[i]) {
      numbers_.add(outside.value);
      mirrored.push_back(i);
    }
  }
  numbers_.allocate();
  for (size_t i = 0; i < mirrored.size(); ++i) {
    tensors_[mirrored[i]] = numbers_.copies()[i];
  }
}

// The pool uses the memory of what is dropped again.
void GraphExecutor::find_last_uses() {
  last_uses_.resize(program_.instructions.size());
  std::vector<bool> is_kept(program_.slots.size(), false);
  const auto keep = [&](SlotId id) { is_kept[static_cast<size_t>(id)] = true; };
  for (const auto& output : program_.outputs) {
    keep(output.second);
  }
  for (const ClosureOutput& closure : program_.closures) {
    std::for_each(closure.tensors.begin(), closure.tensors.end(), keep);
  }
  for (const Instruction& instruction : program_.instructions) {
    if (is_host_call(instruction)) {  // it runs after each launch
      for_each_slot(instruction.arguments, keep);
    }
  }
  for (size_t i = program_.instructions.size(); i-- > 0;) {
    const Instruction& instruction = program_.instructions[i];
    const auto use = [&](SlotId id) {
      if (!is_kept[static_cast<size_t>(id)] && slot(id).kind == SlotKind::Produced) {
        keep(id);
        last_uses_[i].push_back(id);
      }
    };
    for_each_slot(instruction.arguments, use);
    for_each_slot(instruction.results, use);
  }
}

void GraphExecutor::cut_into_segments() {
  size_t begin = 0;
  for (size_t i = 0; i < program_.instructions.size(); ++i) {
    if (is_host_call(program_.instructions[i])) {
      segments_.push_back({begin, i, nullptr, &program_.instructions[i]});
      begin = i + 1;
    }
  }
  if (begin < program_.instructions.size()) {
    segments_.push_back({begin, program_.instructions.size(), nullptr, nullptr});
  }
}

void GraphExecutor::capture(Segment& segment) {
  if (segment.begin == segment.end) {
    return;
  }
  segment.graph = graphs_->make_graph();
  size_t next = segment.begin;
  try {
    segment.graph->capture([&] {
      for (; next < segment.end; ++next) {
        run_instruction(program_.instructions[next], tensors_);
        for (const SlotId id : last_uses_[next]) {
          tensors_[static_cast<size_t>(id)].reset();
        }
      }
    });
  } catch (const std::exception&) {
    if (next == segment.end) {
      throw;
    }
    std::throw_with_nested(CaptureError(rondo::to_text(program_.instructions[next])));
  }
}

// For host calls and results.
void GraphExecutor::place_live() {
  live_ = tensors_;
  for (size_t i = 0; i < program_.slots.size(); ++i) {
    if (program_.slots[i].kind == SlotKind::Captured) {
      live_[i] = program_.slots[i].value;
    }
  }
}

void GraphExecutor::bind(const Batch& batch) {
  for (const SlotId id : inputs_) {
    tensors_[static_cast<size_t>(id)].copy_(batch[slot(id).name], /*non_blocking=*/true);
  }
}

const std::vector<at::Tensor>& GraphExecutor::run(const Batch& batch, DueSet) {
  const KernelsOnly scope;
  bind(batch);
  for (const Segment& segment : segments_) {
    if (segment.graph != nullptr) {
      numbers_.update(*graphs_);  // the host call before it may have changed them
      segment.graph->launch();
    }
    if (segment.host_call != nullptr) {
      run_instruction(*segment.host_call, live_);
    }
  }
  return results_;
}

std::string GraphExecutor::to_text() const {
  const auto graphs = std::count_if(segments_.begin(), segments_.end(), [](const Segment& segment) {
    return segment.graph != nullptr;
  });
  return fmt::format("{} graph{} of {} for {} instructions, {} numbers of the host mirrored\n",
                     graphs,
                     graphs == 1 ? "" : "s",
                     device_.str(),
                     program_.instructions.size(),
                     numbers_.copies().size());
}

}  // namespace rondo
