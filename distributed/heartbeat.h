#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "core/file_descriptor.h"

namespace rondo {

/// How a launcher sees whether its ranks move: a counter in memory that it shares with them.
class Heartbeat {
 public:
  /// Of the launcher. Without memory to share, ranks that hang are not noticed.
  Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  ~Heartbeat();

  /// The environment variable by which a rank finds it.
  std::pair<std::string, std::string> variable() const;

  /// How many batches the ranks have begun, all together.
  uint64_t count() const;

 private:
  detail::FileDescriptor memory_;
  void* counter_ = nullptr;
};

/// In a rank, at the beginning of a batch; does nothing where no launcher looks. Costs some
/// nanoseconds.
void beat();

}  // namespace rondo
