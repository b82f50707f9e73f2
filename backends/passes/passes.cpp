#include "backends/passes/passes.h"

#include <algorithm>
#include <utility>

namespace rondo {

const std::vector<Pass>& clean_up_passes() {
  static const std::vector<Pass> passes = {
      {"identity_views", &remove_identity_views},
      {"common_subexpressions", &merge_common_subexpressions},
      {"needless_copies", &remove_needless_copies},
      {"dead_code", &remove_dead_code},
      {"constants", &fold_constants},
      {"gradients_of_parts", &write_gradients_of_parts_once},
      {"products_in_place", &put_products_in_place},
      {"scaled_updates", &scale_gradients_in_updates},
      {"batch_norm_relu_pool", &fuse_batch_norm_relu_pool},
      {"channel_blocks", &put_channels_in_blocks},
      {"lstm_layers", &take_own_lstm_layers},
  };
  return passes;
}

CleanedUp clean_up(StepProgram program, const std::vector<std::string>& without) {
  CleanedUp result{std::move(program), {}};
  for (const Pass& pass : clean_up_passes()) {
    if (std::find(without.begin(), without.end(), pass.name) != without.end()) {
      continue;
    }
    const auto before = static_cast<int64_t>(result.program.instructions.size());
    result.program = pass.run(std::move(result.program));
    const auto after = static_cast<int64_t>(result.program.instructions.size());
    result.removed.emplace_back(pass.name, before - after);
  }
  return result;
}

}  // namespace rondo
