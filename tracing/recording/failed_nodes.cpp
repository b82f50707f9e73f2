#include "tracing/recording/failed_nodes.h"

#include <exception>
#include <memory>
#include <utility>

#include "tracing/recording/dispatcher.h"
#include "tracing/recording/recorder.h"

namespace rondo {

namespace {

thread_local FailedNodes* active = nullptr;

std::unique_ptr<at::ObserverContext> enter_node(const at::RecordFunction&) {
  return nullptr;
}

Origin forward_of(int64_t sequence_number) {
  const Recorder* const recorder = recorder_of_thread();
  return recorder == nullptr ? Origin() : recorder->forward_of(sequence_number);
}

}  // namespace

FailedNodes::FailedNodes()
    : outer_(std::exchange(active, this)),
      exceptions_(std::uncaught_exceptions()),
      handle_(at::addThreadLocalCallback(
          at::RecordFunctionCallback(&enter_node, &FailedNodes::leave_node)
              .scopes({at::RecordScope::BACKWARD_FUNCTION}))) {}

FailedNodes::~FailedNodes() {
  at::removeCallback(handle_);
  active = outer_;
}

void FailedNodes::leave_node(const at::RecordFunction& node, at::ObserverContext*) {
  if (active != nullptr && std::uncaught_exceptions() > active->exceptions_) {
    active->nodes_.push_back({node.name(), node.seqNr(), forward_of(node.seqNr())});
  }
}

}  // namespace rondo
