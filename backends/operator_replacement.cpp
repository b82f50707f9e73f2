#include "backends/operator_replacement.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "backends/operator_precision.h"
#include "backends/scoped.h"

namespace rondo {

namespace {

thread_local std::vector<OperatorReplacement*> installed;

// How many of them are asked: within a replacement, those before it.
thread_local size_t asked = std::numeric_limits<size_t>::max();

thread_local bool was_included = false;

}  // namespace

void OperatorReplacement::install() {
  const bool before = include_operators(true);
  if (installed.empty()) {
    was_included = before;
  }
  if (std::find(installed.begin(), installed.end(), this) == installed.end()) {
    installed.push_back(this);
  }
}

void OperatorReplacement::remove() {
  const auto at = std::find(installed.begin(), installed.end(), this);
  if (at == installed.end()) {
    return;
  }
  installed.erase(at);
  if (installed.empty()) {
    include_operators(was_included);
  }
}

bool run_replacement(const c10::OperatorHandle& op,
                     std::string_view name,
                     torch::jit::Stack& stack) {
  for (size_t i = std::min(asked, installed.size()); i > 0; --i) {
    const Scoped<size_t> below(asked, i - 1);
    if (installed[i - 1]->replace(op, name, stack)) {
      return true;
    }
  }
  return false;
}

}  // namespace rondo
