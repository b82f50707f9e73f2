#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string_view>

namespace rondo {

/// Stands in for operators, whoever calls them: a layer's forward calls one, and cannot be
/// overridden itself.
class OperatorReplacement {
 public:
  OperatorReplacement() = default;
  OperatorReplacement(const OperatorReplacement&) = delete;
  OperatorReplacement& operator=(const OperatorReplacement&) = delete;

  virtual ~OperatorReplacement() { remove(); }

  /// From here to `remove`, it is asked for each operator of this thread, before autograd and
  /// autocast. Its work is tensor code: a recorded step holds it. Those that were installed later
  /// are asked first, and what one calls is asked of those before it alone.
  void install();

  /// Harmless when it is not installed.
  void remove();

  /// Puts the result on the stack where the arguments were. \param name  without its namespace
  /// \return false: the operator runs as it is
  virtual bool replace(const c10::OperatorHandle& op,
                       std::string_view name,
                       torch::jit::Stack& stack) = 0;
};

/// Asks what is installed. \return false when the operator runs as it is
bool run_replacement(const c10::OperatorHandle& op,
                     std::string_view name,
                     torch::jit::Stack& stack);

}  // namespace rondo
