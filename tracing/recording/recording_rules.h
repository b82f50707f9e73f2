#pragma once

#include "tracing/recording/recorded_call.h"
#include "tracing/recording/slot_table.h"

namespace rondo {

/// Whether the host sees a value, or the size of a result, that follows from bytes of a tensor. One
/// whose answer cannot change is no read.
bool is_read(const RecordedCall& call, const SlotTable& table);

bool is_indexed_by_mask(const RecordedCall& call);

/// Looks for what a replay could not repeat, before the operator runs: numbers that are read on the
/// host and change from step to step, and operators that are refused by name.
/// \throws Objection
void object_to_call(const RecordedCall& call, const SlotTable& table);

}  // namespace rondo
