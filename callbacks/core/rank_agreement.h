#pragma once

namespace rondo {

class Trainer;

/// Compares, at a save, the bytes of what all ranks keep: weights, buffers, the optimizer's state
/// and what callbacks keep. Only rank 0's are saved, so ranks that went apart would end as a run
/// that nobody trained. Warns of a callback's tensors, which may be of one process. Collective.
/// \throws RankMismatchError  naming the first tensor of the model or the optimizer that differs
void require_same_state(Trainer& trainer);

}  // namespace rondo
