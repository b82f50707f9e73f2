#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <string>

namespace rondo {

class HostCalls;
class Recorder;

/// Registers with LibTorch's dispatcher what recording and replaying need: the handler that hands
/// operators to the recorder of the thread, the operator `rondo::host_call`, what passes make of
/// several operators (fused_operators.h), and `rondo::view_dtype`, which graphs have for
/// `aten::view.dtype`. Does nothing when called again.
/// One of the process-wide things of the project.
void register_with_dispatcher();

/// Sets who records this thread's operators, and who answers its host calls; null: nobody.
/// \return who did before
Recorder* exchange_recorder(Recorder* recorder);
HostCalls* exchange_host_calls(HostCalls* calls);

/// Who records this thread's operators; null: nobody.
const Recorder* recorder_of_thread();

/// Runs an operator that reached the handler, and leaves it out of any recording.
void run_unrecorded(const c10::OperatorHandle& op,
                    c10::DispatchKeySet keys,
                    torch::jit::Stack& stack);

/// Operators that a recorded step has run on other threads than the one that records it.
struct StrayOperators {
  int64_t count = 0;   ///< since the process began
  std::string newest;  ///< name of the last one
};

StrayOperators stray_operators();

}  // namespace rondo
