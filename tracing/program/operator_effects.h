#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <vector>

namespace rondo {

/// What an operator does besides computing its results, as far as a recorded step must know.
struct OperatorEffects {
  std::vector<bool> writes;   ///< one an argument: its bytes (or those of its tensors) change
  bool draws_random = false;  ///< from a generator: never removed, merged or moved past another
  bool is_opaque = false;     ///< may do anything: never removed, merged or moved
  bool reads_host = false;    ///< its result, or the size of it, is a value read from a tensor
  bool changes_view_only = false;       ///< in place on sizes and strides; no byte changes
  bool allocates = false;               ///< its result holds whatever was in memory before
  bool reads_shape_only = false;        ///< of its tensor arguments, no byte
  bool reads_what_it_writes = false;    ///< in place from the old bytes, not over them
  bool asks_for_grad_mode = false;      ///< its results depend on whether gradients are wanted
  bool is_ignored = false;              ///< leaves no trace in a program
  bool gives_numbers_only = false;      ///< of the host: no tensor
  bool follows_from_arguments = false;  ///< what it gives and writes: equal ones, equal bytes
  std::string refusal;                  ///< why it cannot be recorded; "" when it can
};

/// Whether the schema says that the argument's bytes change, or those of the tensors in it.
bool is_written(const c10::Argument& argument);

/// Effects from the operator's schema and tags, corrected where these are wrong, and from its
/// facts. An operator that is not LibTorch's and has no facts is opaque when it writes or takes a
/// generator: its schema cannot be vouched for.
OperatorEffects effects_of(const c10::OperatorHandle& op);

}  // namespace rondo
