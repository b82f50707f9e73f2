#include <utility>

#include "backends/passes/passes.h"

namespace rondo {

StepProgram keep_due_closures(StepProgram program, const std::vector<bool>& due) {
  std::vector<ClosureOutput> kept;
  for (ClosureOutput& closure : program.closures) {
    if (due[closure.index]) {
      kept.push_back(std::move(closure));
    }
  }
  program.closures = std::move(kept);
  return remove_dead_code(std::move(program));
}

}  // namespace rondo
