#pragma once

#include <c10/core/DispatchKey.h>

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

}  // namespace rondo
