#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace rondo {

struct C10dStore;
struct LaunchEnvironment;

/// Names and values that all ranks of a run read and write: LibTorch's TCPStore, which rank 0 or
/// the launcher serves. Ranks find each other by it, and say there why they give up.
class KeyStore {
 public:
  /// \throws PeerLostError  when it cannot be reached within `timeout`
  KeyStore(const LaunchEnvironment& environment, std::chrono::milliseconds timeout);

  /// The same store; its keys begin with `prefix`.
  KeyStore below(const std::string& prefix) const;

  /// \throws PeerLostError  when whoever serves the store is gone, here and below
  void set(const std::string& key, const std::string& value) const;

  /// Waits for the key. \return nothing when it does not come within `timeout`
  std::optional<std::string> get(const std::string& key, std::chrono::milliseconds timeout) const;

  /// As `get` and `set`, but they also return in time, with nothing done, when whoever serves the
  /// store is gone or frozen.
  std::optional<std::string> get_in_time(const std::string& key,
                                         std::chrono::milliseconds timeout) const;
  void set_in_time(const std::string& key,
                   const std::string& value,
                   std::chrono::milliseconds timeout) const;

  const C10dStore& c10d() const { return *store_; }

 private:
  explicit KeyStore(std::shared_ptr<C10dStore> store) : store_(std::move(store)) {}

  std::shared_ptr<C10dStore> store_;
};

}  // namespace rondo
