#include "backends/passes/passes.h"

#include <utility>

namespace rondo {

const std::vector<Pass>& clean_up_passes() {
  static const std::vector<Pass> passes = {
      {"identity_views", &remove_identity_views},
      {"common_subexpressions", &merge_common_subexpressions},
      {"needless_copies", &remove_needless_copies},
      {"dead_code", &remove_dead_code},
      {"constants", &fold_constants},
      {"products_in_place", &put_products_in_place},
  };
  return passes;
}

StepProgram clean_up(StepProgram program) {
  for (const Pass& pass : clean_up_passes()) {
    program = pass.run(std::move(program));
  }
  return program;
}

}  // namespace rondo
