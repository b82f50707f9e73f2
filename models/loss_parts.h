#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/tensor_map.h"

namespace rondo {

/// Names of the outputs that are parts of a loss, "loss/<name>", in their order.
std::vector<std::string> loss_parts(const Outputs& outputs);

/// Where a model returned parts of a loss but no "loss": adds that, their sum.  \capture safe
void add_loss_of_parts(Outputs& outputs);

}  // namespace rondo
