#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/step.h"
#include "tracing/program/step_program.h"

namespace rondo {

/// Captured tensors in another dtype, such as weights in bfloat16: cast in the first step of a
/// group of batches and kept for the others, which have the same weights. A step that does not find
/// them as its weights are now, because the first one was captured and not replayed or because host
/// code wrote the weights, casts them before it runs. Shared by the steps of one backend.
class KeptCasts {
 public:
  /// What the replays of one program have to do with them.
  struct Use {
    std::vector<size_t> made;
    std::vector<size_t> read;
    std::vector<const void*> written;  ///< storages of captured tensors
  };

  /// The name under which they can be switched off, as passes can.
  static constexpr const char* kPass = "kept_casts";

  /// Whether a slot of a program is one of them.
  static bool is_kept(const Slot& slot);

  /// Lets the program of a step of a group make the casts, when it is the group's first, or use
  /// those that are kept.
  /// \param state  the live tensors, whose versions tell what host code wrote
  Use keep(StepProgram& program, const GroupPosition& position, const CapturedState& state);

  /// Before a replay: casts what it reads and what is not as it should be.
  void prepare(const Use& use);

  /// After a replay that did not throw.
  void finish(const Use& use);

  /// After a step that was not a replay: any weight may be another one.
  void forget();

 private:
  struct Cast {
    at::Tensor source;
    at::Tensor kept;
    bool is_fresh;
    uint32_t version;  ///< of the source when it was cast; replays do not count there
  };

  size_t cast_of(const at::Tensor& source, const Slot& result);

  std::vector<Cast> casts_;
};

}  // namespace rondo
