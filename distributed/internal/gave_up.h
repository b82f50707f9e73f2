#pragma once

#include <string>

#include "distributed/internal/key_store.h"

namespace rondo {

/// The first line of a message; LibTorch adds its call stack to it.
std::string first_line_of(const std::string& text);

/// Tells the other ranks why this one ends.
void tell_gave_up(const KeyStore& store, int rank, const std::string& cause) noexcept;

/// \throws PeerLostError  with what the lost rank said of itself, or else `seen`. The ranks that
/// wait
///                        for this one find the same
[[noreturn]] void throw_peer_lost(const KeyStore& store,
                                  int rank,
                                  int peer,
                                  const std::string& seen);

}  // namespace rondo
