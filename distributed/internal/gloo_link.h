#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "distributed/internal/key_store.h"
#include "distributed/internal/peer_link.h"

namespace rondo {

/// Whether rondo was built with gloo, LibTorch's transport over the network.
bool has_gloo();

struct GlooPlace {
  int rank = 0;
  int world_size = 1;
  std::string address;  ///< of this host, as the other ranks reach it
  std::chrono::milliseconds timeout = {};
};

/// Connects every pair of ranks. Collective: returns when all have come.
/// \throws PeerLostError      when they do not come
/// \throws NotSupportedError  when rondo was built without gloo
std::unique_ptr<PeerLink> make_gloo_link(const GlooPlace& place, const KeyStore& store);

}  // namespace rondo
