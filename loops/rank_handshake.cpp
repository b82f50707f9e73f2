#include "loops/rank_handshake.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "backends/numeric_environment.h"
#include "distributed/handshake.h"
#include "models/model_state.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// A line for each, in order.
std::string text_of(const NamedTensors& tensors) {
  std::string text;
  for (const NamedTensor& tensor : tensors) {
    text += fmt::format("{} {} [{}]\n",
                        tensor.first,
                        c10::toString(tensor.second.scalar_type()),
                        fmt::join(tensor.second.sizes(), ", "));
  }
  return text;
}

std::string text_of(const NumericEnvironment& here) {
  return fmt::format(
      "LibTorch {}\n{} kernels\n{} threads\noneDNN {}\nBLAS {}\n{} kernels of BLAS\n{}",
      here.libtorch,
      here.cpu_capability,
      here.threads,
      here.onednn,
      here.blas,
      here.blas_core,
      here.gpu);
}

std::string beginning_of(const State& state) {
  return fmt::format("update {}, sample {}, checkpoint {}",
                     state.timestamp.update,
                     state.timestamp.sample,
                     state.last_checkpoint ? state.last_checkpoint->string() : "none");
}

}  // namespace

void require_same_start(const Trainer& trainer) {
  const State& state = trainer.state();
  if (state.communicator->world_size() == 1) {
    return;
  }
  const torch::nn::Module& module = state.model->module();
  require_same_facts(
      *state.communicator,
      {{"the checkpoint to begin with", beginning_of(state)},
       {"their parameters", text_of(named_parameters(module))},
       {"their buffers", text_of(named_buffers(module))},
       {"the numeric environment", text_of(current_environment(state.backend->device()))},
       {"the seed", std::to_string(state.seed)}});
}

}  // namespace rondo
