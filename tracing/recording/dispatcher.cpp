#include "tracing/recording/dispatcher.h"

#include <mutex>
#include <utility>

#include <ATen/ops/index.h>
#include <torch/library.h>

#include "core/error.h"
#include "core/operator_facts.h"
#include "tracing/operators/define_operator.h"
#include "tracing/operators/fused_operators.h"
#include "tracing/operators/lstm_operators.h"
#include "tracing/recording/host_calls.h"
#include "tracing/recording/recorder.h"
#include "tracing/recording/whole_composites.h"

namespace rondo {

namespace {

thread_local Recorder* current_recorder = nullptr;
thread_local HostCalls* host_calls_of_thread = nullptr;

std::mutex strays_mutex;
StrayOperators strays;

void note_stray(const c10::OperatorHandle& op) {
  const std::lock_guard<std::mutex> lock(strays_mutex);
  ++strays.count;
  strays.newest = op.schema().name();
}

// The key Fake lies below autocast and autograd and above the kernels, and nothing uses it in a C++
// program: what arrives here is decomposed, cast and differentiated. It costs nothing while no
// RecordingScope includes it.
void record(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (current_recorder == nullptr) {
    note_stray(op);
    run_unrecorded(op, keys, *stack);
    return;
  }
  current_recorder->run(op, keys, *stack);
}

void make_host_call(int64_t id, const std::vector<at::Tensor>& tensors) {
  if (host_calls_of_thread == nullptr) {
    throw UsageError("rondo::host_call: no step is running on this thread");
  }
  host_calls_of_thread->call(id, tensors);
}

void host_call(int64_t id, at::TensorList tensors) {
  make_host_call(id, tensors.vec());
}

PreparedCall prepare_host_call(const std::vector<c10::IValue>& arguments) {
  return [id = arguments[0].toInt(), tensors = arguments[1].toTensorVector()] {
    make_host_call(id, tensors);
  };
}

at::Tensor index_by_mask(const at::Tensor& x, const c10::List<c10::optional<at::Tensor>>& indices) {
  return at::index(x, indices);
}

at::Tensor view_dtype(const at::Tensor& x, at::ScalarType dtype) {
  return x.view(dtype);
}

}  // namespace

void register_with_dispatcher() {
  static const bool done = [] {
    static torch::Library fallback(
        torch::Library::IMPL, "_", c10::DispatchKey::Fake, __FILE__, __LINE__);
    fallback.fallback(torch::CppFunction::makeFromBoxedFunction<&record>());
    // A fragment: other folders add operators to the same namespace.
    static torch::Library operators(torch::Library::FRAGMENT, "rondo", {}, __FILE__, __LINE__);
    OperatorFacts of_host_call{"rondo::host_call(int id, Tensor(a!)[] tensors) -> ()"};
    of_host_call.effects = OperatorFacts::Effects::Opaque;
    of_host_call.prepare = &prepare_host_call;
    define_operator(operators, std::move(of_host_call), &host_call);
    define_operator(operators,
                    {"rondo::index_by_mask(Tensor self, Tensor?[] indices) -> Tensor"},
                    &index_by_mask);
    define_operator(
        operators, {"rondo::view_dtype(Tensor(a) x, ScalarType dtype) -> Tensor(a)"}, &view_dtype);
    define_fused_operators(operators);
    define_lstm_operators(operators);
    define_whole_composites(operators);
    take_composites_over();
    return true;
  }();
  static_cast<void>(done);
}

void run_unrecorded(const c10::OperatorHandle& op,
                    c10::DispatchKeySet keys,
                    torch::jit::Stack& stack) {
  const c10::impl::ExcludeDispatchKeyGuard unrecorded(c10::DispatchKey::Fake);
  op.redispatchBoxed(
      keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::Fake), &stack);
}

StrayOperators stray_operators() {
  const std::lock_guard<std::mutex> lock(strays_mutex);
  return strays;
}

Recorder* exchange_recorder(Recorder* recorder) {
  return std::exchange(current_recorder, recorder);
}

const Recorder* recorder_of_thread() {
  return current_recorder;
}

HostCalls* exchange_host_calls(HostCalls* calls) {
  return std::exchange(host_calls_of_thread, calls);
}

}  // namespace rondo
