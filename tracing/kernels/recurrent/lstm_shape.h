#pragma once

#include <algorithm>
#include <cstdint>

namespace rondo {

/// Of a layer of LSTM on a batch of sequences.
struct LstmShape {
  static constexpr int64_t kGates = 4;
  static constexpr int64_t kKept = 6;  ///< matrices of states that a step keeps for its gradient

  int64_t steps = 0;  ///< of a sequence
  int64_t batch = 0;
  int64_t inputs = 0;  ///< numbers that a step reads
  int64_t hidden = 0;  ///< numbers of a state

  /// Of one step, for all of the batch.
  int64_t states() const { return batch * hidden; }

  int64_t gates() const { return kGates * hidden; }

  /// From one row of gates to the next. Rows that are powers of two apart would push each other out
  /// of the cache.
  int64_t row_of_gates() const { return gates() + 16; }

  /// All steps of all sequences.
  int64_t rows() const { return steps * batch; }

  /// Distinct inputs of all steps for which it pays to multiply each but once: a quarter of them,
  /// and not more than what such a product writes stays in the cache for.
  int64_t most_distinct() const { return std::min<int64_t>(rows() / 4, 256); }

  /// Numbers that are kept for the gradient: [steps, 6, batch, hidden].
  int64_t kept() const { return steps * kKept * states(); }
};

}  // namespace rondo
