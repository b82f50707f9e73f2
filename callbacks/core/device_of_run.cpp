#include "callbacks/core/device_of_run.h"

#include "distributed/communicator.h"
#include "distributed/launch_environment.h"
#include "tracing/make_backend.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// Among the ranks of this host.
int local_rank(const Trainer& trainer) {
  if (trainer.state().communicator->world_size() == 1) {
    return 0;
  }
  const auto launched = read_launch_environment();
  return launched ? launched->local_rank : 0;
}

}  // namespace

std::optional<c10::Device> device_of_run(const Trainer& trainer) {
  return find_device(trainer.options().backend.device, local_rank(trainer));
}

}  // namespace rondo
