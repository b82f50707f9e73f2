#pragma once

#include "tracing/program/step_program.h"
#include "tracing/recording/recorded_call.h"
#include "tracing/recording/slot_table.h"

namespace rondo {

/// Objects to a host read before which the step did what cannot be undone: when a guard fails in a
/// replay, what came before it is.
/// \throws Objection
void object_to_late_read(const RecordedCall& read, const StepProgram& program, SlotTable& table);

/// Objects to a host read of a constant: a replay has a copy of what it was, and would not see it
/// change.
/// \throws Objection
void object_to_read_of_constant(const RecordedCall& read, SlotTable& table);

}  // namespace rondo
