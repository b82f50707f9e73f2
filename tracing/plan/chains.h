#pragma once

#include <cstddef>

#include "tracing/plan/plan.h"

namespace rondo {

// Element-wise instructions in a row, run part by part: while the first part of a tensor is still
// in the nearest cache, each of them is done with it. The same operations on the same elements, in
// the same order for each element; memory is read once instead of once an instruction, and results
// that take their arguments' places are written once.

/// The name under which they can be switched off, as passes can.
inline constexpr const char* kChainsPass = "elementwise_chains";

/// Finds and counts them: sets `PlannedInstruction::chain`. Left out are instructions of few
/// elements, and those whose memory another one of the chain uses for other elements.
void find_chains(Plan& plan);

/// True when kernels of rondo's own run all of the chain that begins there, and no trial is left.
bool is_settled_chain(const PlannedInstruction* first);

/// Runs a settled chain.
void run_chain(PlannedInstruction* first);

}  // namespace rondo
