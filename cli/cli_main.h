#pragma once

#include <functional>

namespace rondo {

struct Registries;

/// The whole command line, to call from your own `main`. Never throws: errors go to standard error.
/// \param register_components  adds your components to rondo's before any file is read
/// \return the exit code: 0 done, 1 failed, 2 bad usage or config, 3 finished but some checkpoints
///         were skipped, 129, 130 and 143 stopped by SIGHUP, SIGINT and SIGTERM
int cli_main(int argc,
             char** argv,
             const std::function<void(Registries&)>& register_components = {});

}  // namespace rondo
