#include "core/forward_context.h"

#include <utility>

namespace rondo {

namespace {

thread_local ForwardContext::Reopen running;

}  // namespace

ForwardContext::ForwardContext(Reopen reopen)
    : before_(std::exchange(running, std::move(reopen))) {}

ForwardContext::~ForwardContext() {
  running = std::move(before_);
}

const ForwardContext::Reopen& ForwardContext::current() {
  return running;
}

}  // namespace rondo
