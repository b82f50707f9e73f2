#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tracing/program/step_program.h"

namespace torch::jit {
struct Graph;
}

namespace rondo {

/// A step as a TorchScript graph, and what its inputs and outputs are. No pass of LibTorch is ever
/// run on it: they do not know what batch norm writes.
struct JitGraph {
  std::shared_ptr<torch::jit::Graph> graph;
  std::vector<SlotId> inputs;    ///< of the batch, in the program's order
  std::vector<SlotId> captured;  ///< further inputs: state that the step reads or writes
  std::vector<SlotId> outputs;   ///< the program's outputs, then the tensors of its closures
};

/// \throws CaptureError  when TorchScript cannot express an instruction
JitGraph to_jit_graph(const StepProgram& program);

std::string to_text(const JitGraph& graph);

}  // namespace rondo
