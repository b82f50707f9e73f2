#pragma once

namespace rondo {

/// A TCP port of the loopback interface that nobody listens at now; 0 when there is none.
int free_port();

}  // namespace rondo
