#pragma once

#include <vector>

#include "optim/optimizer.h"

namespace rondo::detail {

/// Checks the numbers of rondo's own optimizers, and what groups set in their place: each of one
/// name has one range. \param optimizer  its name, for the message \throws UsageError  naming
/// option, rule and value
void check_numbers(const char* optimizer,
                   const Optimizer::Numbers& numbers,
                   const std::vector<ParamGroupOptions>& groups);

}  // namespace rondo::detail
