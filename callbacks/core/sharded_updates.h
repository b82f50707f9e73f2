#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "callbacks/core/flat_rooms.h"
#include "core/named_tensor.h"
#include "core/state_dict.h"
#include "distributed/communicator.h"
#include "optim/update_sharing.h"

namespace rondo {

class Trainer;

/// The process that updates each parameter: neighbouring ones, with about as many elements for each
/// process. Parameters are not cut, so rules that need whole ones work, and a process can have more
/// by the size of the largest one.
/// \param elements  of each parameter
std::vector<int> owners_of(const std::vector<int64_t>& elements, int processes);

/// Updates of an optimizer that are shared out among the ranks of a run. Bits are those of one
/// process.
class ShardedUpdates final : public UpdateSharing {
 public:
  /// \param trainer  outlives it
  explicit ShardedUpdates(Trainer& trainer);

  std::vector<bool> share(const NamedTensors& parameters) override;
  void exchange(const std::vector<at::Tensor>& values) override;

  /// An optimizer's `state_dict` with the tensors of all ranks in the first rank, which saves it.
  /// In the others, tensors of other ranks stay on `meta`. Collective.
  StateDict gathered(const StateDict& state) const;

 private:
  size_t end_of_parcel(const std::vector<at::Tensor>& all, size_t begin) const;
  void send(const std::vector<at::Tensor>& all, size_t begin, size_t end);

  Trainer& trainer_;
  Communicator& communicator_;
  std::vector<int> in_order_;          // the owner of each parameter
  std::map<std::string, int> owners_;  // the same by name
  FlatRooms rooms_;
};

}  // namespace rondo
