#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tracing/program/step_program.h"

namespace rondo {

/// A node of autograd's graph in which something was thrown.
struct FailedNode {
  std::string name;         ///< such as "AddmmBackward0"
  int64_t sequence_number;  ///< autograd's; -1: none
  Origin forward;  ///< the operator whose gradient it computes, where the step is being recorded
};

/// While it lives, this thread notes the nodes in which something is thrown. Costs a fraction of a
/// microsecond a node.
class FailedNodes {
 public:
  FailedNodes();
  FailedNodes(const FailedNodes&) = delete;
  FailedNodes& operator=(const FailedNodes&) = delete;
  ~FailedNodes();

  /// The innermost first: a node can run a backward of its own.
  const std::vector<FailedNode>& nodes() const { return nodes_; }

 private:
  static void leave_node(const at::RecordFunction& node, at::ObserverContext* context);

  std::vector<FailedNode> nodes_;
  FailedNodes* outer_;
  int exceptions_;  // that were on their way before
  at::CallbackHandle handle_;
};

}  // namespace rondo
