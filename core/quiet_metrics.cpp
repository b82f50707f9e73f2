#include "core/quiet_metrics.h"

namespace rondo {

namespace {

thread_local int open_scopes = 0;

}  // namespace

QuietMetrics::QuietMetrics() {
  ++open_scopes;
}

QuietMetrics::~QuietMetrics() {
  --open_scopes;
}

bool QuietMetrics::is_on() {
  return open_scopes > 0;
}

}  // namespace rondo
