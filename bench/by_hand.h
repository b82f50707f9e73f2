#pragma once

#include <memory>

#include "contenders.h"

namespace bench {

/// What a C++ user writes today.
std::unique_ptr<Contender> make_hand_written(const Workload& w, const Settings& settings);

/// What a C++ user writes who records the step as a graph of the device: a fused update, and no
/// number that changes from step to step.
/// \throws NotSupportedError  for a device without graphs, and for a workload that accumulates or
/// clips
std::unique_ptr<Contender> make_hand_made_graph(const Workload& w, const Settings& settings);

}  // namespace bench
