#pragma once

namespace rondo {

/// Drops what this thread logs as metrics as long as it lives: a forward pass that is no part of
/// the run is computed with everybody's hooks. Scopes nest.
class QuietMetrics {
 public:
  QuietMetrics();
  QuietMetrics(const QuietMetrics&) = delete;
  QuietMetrics& operator=(const QuietMetrics&) = delete;
  ~QuietMetrics();

  /// Whether there is one in this thread.
  static bool is_on();
};

}  // namespace rondo
