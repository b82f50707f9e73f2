#pragma once

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

}  // namespace rondo
