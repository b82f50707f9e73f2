#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/error.h"

namespace rondo {

/// Another rank is gone, frozen or unreachable, or gave up. Names the rank and the cause. The
/// communicator that throws it is of no use any more.
struct PeerLostError : Error {
  using Error::Error;
};

/// Ranks are not doing the same: another collective, another size, another configuration. Names
/// what differs and the ranks.
struct RankMismatchError : Error {
  using Error::Error;
};

/// The ranks of a run, from one of them: what they do together. All ranks call the same collectives
/// in the same order, with tensors of the same dtype and number of elements; where they do not, all
/// of them get a RankMismatchError, or a PeerLostError when the others do not come. A collective
/// returns in every rank or throws. One thread uses it at a time.
///
/// The world size is a power of two, and sums are a fixed binary tree by rank: neighbours first,
/// (0+1), (2+3), (4+5) …; then pairs of pairs, ((0+1)+(2+3)) …; each addition is rounded to the
/// dtype, as `add_` rounds. So V parts that one process adds in this order (`tree_sum`), or 2 or 4
/// processes that add their own V/2 or V/4 neighbouring parts in it and then call `all_reduce`, get
/// the same bytes. The transport has no say in it.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;

  /// What carries the bytes: "none" in a single process, "shm" or "gloo".
  virtual const char* transport() const = 0;

  /// Sums `values` over the ranks, element by element, in place; every rank gets the same bytes.
  /// \param values  contiguous, on the CPU, of any number dtype; bool: true where it is in a rank
  virtual void all_reduce(at::Tensor& values) = 0;

  /// Every rank gets the bytes of `root`.
  /// \param values  contiguous, on the CPU
  virtual void broadcast(at::Tensor& values, int root) = 0;

  /// The strings of all ranks in rank order, each of its own length: names, digests, metadata.
  virtual std::vector<std::string> all_gather(const std::string& bytes) = 0;

  /// Returns once every rank has called it.
  virtual void barrier() = 0;

  /// Tells the other ranks that this one ends with an error, so that theirs names the cause. Does
  /// nothing after the first call.
  virtual void give_up(const std::string& cause) noexcept = 0;
};

/// Adds `parts`, a power of two of them, into the first in the order that `Communicator` promises.
/// The others are overwritten.
void tree_sum(std::vector<at::Tensor>& parts);

/// `into` += `other` as every sum of ranks and virtual ranks is added; bool: or.
void add_part(at::Tensor& into, const at::Tensor& other);

}  // namespace rondo
