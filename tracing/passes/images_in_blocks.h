#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tracing/program/step_program.h"

namespace rondo {

/// Which images of a step lie in blocks of channels (program/image.h).
struct ImagesInBlocks {
  std::vector<bool> is_in;             ///< by slot
  std::vector<const char*> operators;  ///< by instruction: what it is called then; null: as before

  bool contains(SlotId slot) const { return slot != kNoTensor && is_in[static_cast<size_t>(slot)]; }
};

/// Those that nobody sees but operators that take them so. Where the two sides of a pooled batch
/// norm differ, its windows are to be copied, which are a quarter of the image.
ImagesInBlocks images_in_blocks(const StepProgram& program, int64_t block);

}  // namespace rondo
