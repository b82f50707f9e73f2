#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "core/tensor_map.h"
#include "distributed/communicator.h"

namespace rondo {

/// Brings the outputs of a pass that processes share to all of them, in the order of its batches.
/// Holds as many batches as there are virtual ranks, at most.
class GatheredOutputs {
 public:
  using Take = std::function<void(const Outputs& outputs, int64_t batch_idx)>;

  /// \param take  called for each batch of the pass
  GatheredOutputs(Communicator& communicator, Take take);

  /// Of a batch of this process; they are on the host. Collective: each process calls it for each
  /// of its batches, and then `finish`.
  void add(const Outputs& outputs, int64_t batch_idx);

  /// Waits for processes that have more batches. Collective.
  void finish();

 private:
  bool exchange(const std::string& own);
  void give();

  Communicator& communicator_;
  Take take_;
  int64_t next_ = 0;  // the batch that is taken next
  std::map<int64_t, Outputs> waiting_;
};

}  // namespace rondo
