#include "distributed/internal/gave_up.h"

#include <fmt/format.h>

#include "distributed/communicator.h"

namespace rondo {

namespace {

constexpr std::chrono::milliseconds kToSaySo(300);

std::string key_of(int rank) {
  return fmt::format("gave_up/{}", rank);
}

}  // namespace

std::string first_line_of(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

void tell_gave_up(const KeyStore& store, int rank, const std::string& cause) noexcept {
  try {
    store.set_in_time(key_of(rank), cause, kToSaySo);
  } catch (...) {  // no thread to be had: the others find this one gone
  }
}

void throw_peer_lost(const KeyStore& store, int rank, int peer, const std::string& seen) {
  // A rank that waits for this one asks it in turn, so that all name the one that began.
  const auto said = store.get_in_time(key_of(peer), kToSaySo);
  const std::string cause = said ? "it gave up: " + *said : first_line_of(seen);
  const std::string message = fmt::format("rank {} lost rank {}: {}", rank, peer, cause);
  tell_gave_up(store, rank, message);
  throw PeerLostError(message);
}

}  // namespace rondo
