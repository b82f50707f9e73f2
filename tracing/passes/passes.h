#pragma once

#include <string>
#include <vector>

#include "backends/executor.h"
#include "tracing/program/step_program.h"

namespace rondo {

// Each pass takes a program and returns one that leaves the same bytes in captured state, outputs,
// closures and generators, unless it says otherwise. One idea a file.

/// Drops instructions whose results nothing needs. Keeps those that write what outlives the step,
/// draw random numbers (the later draws would shift) or are opaque.
StepProgram remove_dead_code(StepProgram program);

/// Drops views of the whole of a tensor, in its own shape: detach, alias, lift_fresh, t(t(x)).
StepProgram remove_identity_views(StepProgram program);

/// Drops copies when neither the copy nor its source is written after it was made.
StepProgram remove_needless_copies(StepProgram program);

/// Computes equal things once. Never merges what writes, draws random numbers or is opaque, nor
/// results that something writes into.
StepProgram merge_common_subexpressions(StepProgram program);

/// Computes what follows from shapes and numbers alone (ones_like, arange) now and once.
StepProgram fold_constants(StepProgram program);

/// Lets matrix products whose only use is to be copied to, or added to, a tensor write there at
/// once: gradients that are kept from batch to batch.
StepProgram put_products_in_place(StepProgram program);

/// Writes the gradient of a tensor of which only parts were used, `x.select(0, i)` for some `i`, at
/// once, in place of a sum of tensors that are each zero but for one part: `n` parts of one tensor
/// cost its size then, not `n` times that.
StepProgram write_gradients_of_parts_once(StepProgram program);

/// Makes the gradient of a mean of cross entropies from the logarithms of softmax at once: a matrix
/// with one number a row, which comes from the mean, is neither written nor read.
StepProgram fuse_cross_entropy_backward(StepProgram program);

/// Lets updates multiply their gradients by the scale that clipping found, part by part, where
/// nothing looks at the gradients in between.
StepProgram scale_gradients_in_updates(StepProgram program);

/// Makes one instruction of a batch norm in training, ReLU and a pooling of windows of two by two,
/// and one of their gradients, where nothing else sees what is in between: it is not kept then.
StepProgram fuse_batch_norm_relu_pool(StepProgram program);

/// Lets the images between convolutions, batch norms, element-wise operators and what
/// `fuse_batch_norm_relu_pool` made lie as oneDNN computes on them, with the channels side by side
/// in blocks: convolutions need not copy them then.
StepProgram put_channels_in_blocks(StepProgram program);

/// Lets rondo's own layers of LSTM run in place of LibTorch's, and their gradients, where the bits
/// are the same: their weights are packed once for all steps of a sequence.
StepProgram take_own_lstm_layers(StepProgram program);

/// Lets the gradient of a layer of LSTM whose inputs an embedding looks up add up for each row of
/// the table, where the rows are few, before it multiplies by weights and inputs. Sums have another
/// order then: for steps that need not be exact.
StepProgram add_up_rows_of_tables(StepProgram program);

struct Pass {
  const char* name;
  StepProgram (*run)(StepProgram);
  /// Counted as applied: how many more of this operator there are afterwards; null: how many fewer
  /// instructions.
  const char* makes = nullptr;
  bool is_exact = true;    ///< false: not for steps that are to give the bytes of eager
  bool is_for_cpu = true;  ///< false: for every device
};

/// What every recorded step goes through, in order.
const std::vector<Pass>& clean_up_passes();

/// A program after the passes, and how often each of them applied.
struct CleanedUp {
  StepProgram program;
  PassCounts applied;
};

/// \param without  names of passes to leave out
/// \param exact    leaves out those that are not
/// \param device   of the step: leaves out those that are not for it
CleanedUp clean_up(StepProgram program,
                   const std::vector<std::string>& without = {},
                   bool exact = true,
                   c10::DeviceType device = c10::kCPU);

/// Which instructions the outputs, what outlives the step, and the closures that are due need.
/// \param due  one a closure
std::vector<bool> needed_instructions(const StepProgram& program, const std::vector<bool>& due);

/// For each instruction of a program without dead code, the closures that need it; all bits set
/// when it is needed whatever is due.
std::vector<DueSet> find_users(const StepProgram& program);

}  // namespace rondo
