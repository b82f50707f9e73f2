#pragma once

#include "core/registry.h"
#include "sparsity/algorithm.h"

namespace rondo {

/// Adds every sparsity algorithm that a config can name.
void register_builtin_sparsity_algorithms(Registry<SparsityAlgorithm>& registry);

}  // namespace rondo
