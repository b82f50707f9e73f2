#pragma once

namespace torch {
class Library;
}

namespace rondo {

/// Some operators that LibTorch composes of others read a tensor of integers through its pointer,
/// below every operator: the lengths of a CTC loss, the places of `tensor_split`, the batch sizes
/// of packed sequences. A recording sees nothing of it, and a replay would go on with the numbers
/// of the capture. While such an operator is recorded, the integers are read by an operator of
/// rondo before, which becomes a guard.

/// Adds that operator to rondo's namespace.
void define_length_reads(torch::Library& library);

/// Takes the operators over.
/// \param composites  of `kWholeComposites`
void take_length_reads_over(torch::Library& composites);

}  // namespace rondo
