#pragma once

#include <cstdint>
#include <string>

#include "callbacks/callback_map.h"
#include "core/error.h"
#include "core/log.h"

namespace rondo {

/// A second base of a logger that writes on a thread, so that a slow disk does not slow training.
/// `Logger::flush` then begins to write, and does not wait.
class WritesOnThread {
 public:
  /// Waits until everything that was logged is written. Called at each save, which promises it, and
  /// when a fit or a validation outside of one ends.
  /// \throws IoError  when something could not be written, once
  virtual void finish_writing() = 0;

  /// Waits likewise, and says how many entries, such as lines, could not be written.
  virtual int64_t lost() = 0;

 protected:
  ~WritesOnThread() = default;
};

/// A full disk must not end a run for its metrics.
void warn_of_lost_values(const TextLog& log, const IoError& error);

/// What loggers could not write, such as "12 entries by JsonlLogger"; "" when nothing was lost.
std::string lost_entries(const CallbackMap& callbacks);

}  // namespace rondo
