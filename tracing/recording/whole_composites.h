#pragma once

#include <c10/core/DispatchKey.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "tracing/program/step_program.h"

namespace torch {
class Library;
}

namespace rondo {

/// Lies above autograd, where operators that LibTorch composes of others are still whole; nothing
/// in a C++ program uses it. While a RecordingScope includes it, operators are taken over here that
/// could not be recorded by what they do: composites that read the host on their way, and views
/// whose bytes mean other values.
inline constexpr c10::DispatchKey kWholeComposites = c10::DispatchKey::TESTING_ONLY_GenericMode;

/// Adds the operators that stand for composites to rondo's namespace.
void define_whole_composites(torch::Library& library);

/// Takes the composites over, for as long as the process lives.
void take_composites_over();

/// A batch norm without a momentum reads on the host how many batches it has seen, and gives the
/// operator 1 / n instead. Where that read is the newest instruction but for allocations, the
/// operator becomes one that reads the count itself, in each replay.
/// \param op  that is about to be appended, and its arguments
/// \return the read, which is needless then
std::optional<size_t> take_over_batch_count(const StepProgram& program,
                                            c10::OperatorHandle& op,
                                            std::vector<Argument>& arguments);

}  // namespace rondo
