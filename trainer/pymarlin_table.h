#pragma once

#include "core/config_value.h"

namespace rondo::pymarlin {

/// Puts what `[trainer.pymarlin]` says, in PyMarlin's words and with its defaults, into the other
/// tables of a phase in rondo's words, and takes the table away. What the file gives there itself
/// replaces a default; where it differs from what `[trainer.pymarlin]` gives, both places are a
/// fault. Nothing without the table.
void expand_table(ConfigTable& trainer, FaultSink& faults);

}  // namespace rondo::pymarlin
