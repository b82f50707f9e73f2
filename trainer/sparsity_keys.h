#pragma once

#include "core/options.h"

namespace rondo {

struct Registries;

/// `sparsity` of TrainerOptions: a share, a table of keys, or a list of tables, one a group.
OptionKey sparsity_key(const Registries& registries);

}  // namespace rondo
