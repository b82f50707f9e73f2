#include "tracing/passes/passes.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "tracing/program/storages.h"

namespace rondo {

namespace {

/// \param op  null: all instructions
int64_t count(const StepProgram& program, const char* op) {
  return std::count_if(
      program.instructions.begin(),
      program.instructions.end(),
      [&](const Instruction& instruction) { return op == nullptr || has_name(instruction, op); });
}

}  // namespace

const std::vector<Pass>& clean_up_passes() {
  static const std::vector<Pass> passes = {
      {"identity_views", &remove_identity_views, nullptr, /*is_exact=*/true, /*is_for_cpu=*/false},
      {"common_subexpressions",
       &merge_common_subexpressions,
       nullptr,
       /*is_exact=*/true,
       /*is_for_cpu=*/false},
      {"needless_copies",
       &remove_needless_copies,
       nullptr,
       /*is_exact=*/true,
       /*is_for_cpu=*/false},
      {"dead_code", &remove_dead_code, nullptr, /*is_exact=*/true, /*is_for_cpu=*/false},
      {"constants", &fold_constants, nullptr, /*is_exact=*/true, /*is_for_cpu=*/false},
      {"gradients_of_parts", &write_gradients_of_parts_once, "rondo::gradients_of_parts"},
      {"cross_entropy_backward", &fuse_cross_entropy_backward, "rondo::cross_entropy_backward"},
      {"products_in_place", &put_products_in_place},
      {"scaled_updates", &scale_gradients_in_updates},
      {"batch_norm_relu_pool", &fuse_batch_norm_relu_pool, "rondo::batch_norm_relu_pool"},
      // Whatever image lies in blocks, a convolution made it so.
      {"channel_blocks", &put_channels_in_blocks, "rondo::convolution"},
      {"lstm_layers", &take_own_lstm_layers, "rondo::lstm_layer"},
      {"rows_of_tables", &add_up_rows_of_tables, "rondo::lstm_table_backward", /*is_exact=*/false},
  };
  return passes;
}

CleanedUp clean_up(StepProgram program,
                   const std::vector<std::string>& without,
                   bool exact,
                   c10::DeviceType device) {
  CleanedUp result{std::move(program), {}};
  for (const Pass& pass : clean_up_passes()) {
    int64_t applied = 0;
    const bool is_left_out = std::find(without.begin(), without.end(), pass.name) != without.end();
    const bool is_for_device = !pass.is_for_cpu || device == c10::kCPU;
    if (!is_left_out && is_for_device && (pass.is_exact || !exact)) {
      const int64_t before = count(result.program, pass.makes);
      result.program = pass.run(std::move(result.program));
      applied = std::abs(count(result.program, pass.makes) - before);
    }
    result.applied.emplace_back(pass.name, applied);
  }
  return result;
}

}  // namespace rondo
