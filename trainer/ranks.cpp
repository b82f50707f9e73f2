#include "trainer/ranks.h"

#include <fmt/format.h>
#include <torch/version.h>

#include "core/version.h"
#include "distributed/connect.h"
#include "distributed/handshake.h"
#include "trainer/run_aside.h"

namespace rondo {

std::shared_ptr<Communicator> join_ranks(TrainerOptions& options, const TextLog& log) {
  std::shared_ptr<Communicator> ranks =
      options.communicator ? options.communicator : connect_ranks(options.distributed, log);
  if (ranks->world_size() > 1) {
    require_same_facts(
        *ranks,
        {{"their version", fmt::format("rondo {} with LibTorch {}", kVersion, TORCH_VERSION)},
         {"the configuration", options.config_text}});
  }
  if (ranks->rank() != 0) {
    options.loggers.clear();
    leave_out_notifications(options);
  }
  return ranks;
}

}  // namespace rondo
