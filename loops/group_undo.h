#pragma once

#include <memory>

#include "core/state_dict.h"
#include "core/timestamp.h"

namespace rondo {

class StateSnapshot;
class Trainer;

/// Undoes a group of batches that was not trained to its end: weights, optimizers, the random
/// state, counters and the states of callbacks are then as they were before it. Keeps one copy of
/// the state that steps read or write. What hooks and closures of its batches did elsewhere stays.
class GroupUndo {
 public:
  GroupUndo();
  GroupUndo(const GroupUndo&) = delete;
  GroupUndo& operator=(const GroupUndo&) = delete;
  ~GroupUndo();

  /// Call it before the first batch of a group.
  void note(Trainer& trainer);

  /// Goes back there. Call it between steps.
  void undo(Trainer& trainer);

 private:
  std::unique_ptr<StateSnapshot> tensors_;
  StateDict callbacks_;
  Timestamp now_;
  Timestamp previous_;
  Timestamp earlier_;
};

}  // namespace rondo
