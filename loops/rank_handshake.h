#pragma once

namespace rondo {

class DataLoader;
class Trainer;

/// Compares, before the first step of a fit, what the bits of its ranks depend on: parameters and
/// buffers, the optimizer's numbers, size and order of the training data, the numeric environment,
/// the seed, and where the run begins. Collective.
///
/// \throws RankMismatchError  naming what differs, and the ranks
void require_same_start(const Trainer& trainer, const DataLoader& train);

}  // namespace rondo
