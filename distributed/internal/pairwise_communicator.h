#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "distributed/communicator.h"
#include "distributed/internal/peer_link.h"

namespace rondo {

struct CollectiveCall;

/// Collectives over a link between pairs of ranks. Ranks that sum exchange with their neighbour,
/// then with the neighbour pair's rank and so on, which is the tree of the sum: small tensors whole
/// (log W messages), large ones in halves that are gathered afterwards (2(W-1)/W of the bytes).
///
/// Each message begins with a frame of fixed size that says which collective it is of, so that
/// ranks which do different things find out before sizes differ: gloo would end the process then.
class PairwiseCommunicator final : public Communicator {
 public:
  /// \param transport  what the link is, for messages
  /// \param give_up    tells the other ranks why this one ends; empty: they are not told
  PairwiseCommunicator(int rank,
                       int world_size,
                       const char* transport,
                       std::unique_ptr<PeerLink> link,
                       std::function<void(const std::string&)> give_up);

  int rank() const override { return rank_; }

  int world_size() const override { return world_size_; }

  const char* transport() const override { return transport_; }

  void all_reduce(at::Tensor& values) override;
  void broadcast(at::Tensor& values, int root) override;
  std::vector<std::string> all_gather(const std::string& bytes) override;
  void barrier() override;
  void give_up(const std::string& cause) noexcept override;

 private:
  struct Frame;

  /// One message each way; the frames are compared first.
  void exchange(const CollectiveCall& call,
                int to,
                const void* out,
                size_t out_bytes,
                int from,
                void* in,
                size_t in_bytes);
  void exchange_rest(
      int to, const void* out, size_t out_bytes, int from, void* in, size_t in_bytes);
  std::string exchange_text(const CollectiveCall& call, int peer, const std::string& out);
  Frame exchange_frames(
      const CollectiveCall& call, int to, const void* out, size_t out_bytes, int from);
  void reduce_whole(const CollectiveCall& call, at::Tensor& values);
  void reduce_in_halves(const CollectiveCall& call, at::Tensor& values);
  void add_from(int peer, at::Tensor& values, at::Tensor& theirs) const;

  int rank_;
  int world_size_;
  const char* transport_;
  std::unique_ptr<PeerLink> link_;
  std::function<void(const std::string&)> give_up_;
  uint64_t calls_ = 0;
};

}  // namespace rondo
