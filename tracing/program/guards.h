#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <string>
#include <vector>

#include "backends/step_report.h"
#include "tracing/program/step_program.h"

namespace rondo {

/// Stands in a program for `aten::index` with a mask among the indices.
inline constexpr const char* kIndexByMask = "rondo::index_by_mask";

/// Whether the sizes of an operator's results follow from bytes of its arguments. `aten::index` is
/// not among them: see `kIndexByMask`.
bool has_size_from_data(const c10::OperatorHandle& op);

/// Whether the host saw the instruction's answer, or the size of its results: a replay is the step
/// as written only while these are as they were recorded.
bool is_guard(const Instruction& instruction);

/// What a guard answered: values on the host, and the sizes of tensors.
std::string answer_in(c10::ArrayRef<c10::IValue> returned);

/// What it was recorded with.
std::string answer_of(const StepProgram& program, const Instruction& guard);

/// Of all guards of a program, in order.
std::vector<std::string> answers_of(const StepProgram& program);

/// The same for people, with what was read and where. Slow.
std::vector<StepGuard> guards_of(const StepProgram& program);

}  // namespace rondo
