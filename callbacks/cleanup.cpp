#include "callbacks/cleanup.h"

#include "core/error.h"

namespace rondo {

namespace {

/// `added`, thrown while `error` was being handled, as one exception with `error` nested.
std::exception_ptr nest(const std::exception_ptr& added, const std::exception_ptr& error) {
  try {
    try {
      std::rethrow_exception(error);
    } catch (...) {
      std::throw_with_nested(HookError(describe(added)));
    }
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

Cleanup::~Cleanup() {
  (void)close(nullptr);
}

std::exception_ptr Cleanup::close(std::exception_ptr error) {
  while (!actions_.empty()) {
    const Action action = std::move(actions_.back());
    actions_.pop_back();
    try {
      action(error);
    } catch (...) {
      error = error ? nest(std::current_exception(), error) : std::current_exception();
    }
  }
  return error;
}

}  // namespace rondo
