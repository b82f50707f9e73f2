#include "data/internal/random_watch.h"

#include <ATen/core/function_schema.h>

#include <memory>

namespace rondo::detail {

namespace {

thread_local bool has_drawn = false;

/// An operator that takes a generator and got none takes the default one.
std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& call) {
  if (const auto schema = call.operator_schema()) {
    const auto inputs = call.inputs();
    for (size_t i = 0; i < schema->arguments().size() && i < inputs.size(); ++i) {
      has_drawn = has_drawn || (schema->arguments()[i].name() == "generator" && inputs[i].isNone());
    }
  }
  return nullptr;
}

}  // namespace

RandomWatch::RandomWatch()
    : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(&note).needsInputs(true).scopes(
          {at::RecordScope::FUNCTION}))) {
  has_drawn = false;
}

RandomWatch::~RandomWatch() {
  at::removeCallback(handle_);
}

bool RandomWatch::has_seen_draw() const {
  return has_drawn;
}

}  // namespace rondo::detail
