#pragma once

#include <cstddef>

namespace rondo {

/// Carries bytes between this rank and another one. Both sides call it in the same order; what one
/// sends is exactly as long as what the other receives.
class PeerLink {
 public:
  PeerLink() = default;
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;
  virtual ~PeerLink() = default;

  static constexpr int kNobody = -1;

  /// Sends to one rank while it receives from one; either can be kNobody.
  /// \throws PeerLostError  naming the rank
  virtual void transfer(
      int to, const void* out, size_t out_bytes, int from, void* in, size_t in_bytes) = 0;
};

}  // namespace rondo
