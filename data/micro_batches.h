#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor_map.h"

namespace rondo {

/// Cuts a batch along its first dimension; the last piece may be smaller. Tensors without a
/// dimension are in every piece.
/// \param samples  of a piece, >= 1
/// \param not_cut  tensors that are in every piece as they are, behind the others
/// \throws DataError  naming a tensor whose first dimension is not the batch's size, or when no
///                    tensor can be cut
std::vector<Batch> micro_batches(const Batch& batch,
                                 int64_t samples,
                                 const std::vector<std::string>& not_cut);

/// A batch whose tensors that are cut come first, so that its size is that of what is cut.
/// \param not_cut  as for `micro_batches`
/// \throws DataError  as `micro_batches`
Batch cut_first(const Batch& batch, const std::vector<std::string>& not_cut);

/// The samples of a batch from `begin` on.
/// \param batch    as `cut_first` gives it
/// \param not_cut  as for `micro_batches`
Batch samples_of(const Batch& batch,
                 int64_t begin,
                 int64_t length,
                 const std::vector<std::string>& not_cut);

/// Tokens of a batch that count in a mean loss: elements of its labels but those that are -100.
/// \param labels  names that labels may have; where the batch has none of them, those of "tokens"
/// \throws DataError  when it has neither
int64_t tokens_of(const Batch& batch, const std::vector<std::string>& labels);

}  // namespace rondo
