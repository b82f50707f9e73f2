#pragma once

#include "core/state_dict.h"

namespace rondo {

/// Prints an entry of a checkpoint a line, with its path: numbers, truths and short texts as they
/// are, of others what they are, as in `model/layer0.weight: a tensor Float[10, 784]`.
void print_entries(const StateDict& state);

}  // namespace rondo
