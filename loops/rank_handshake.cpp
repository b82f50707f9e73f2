#include "loops/rank_handshake.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <vector>

#include "backends/numeric_environment.h"
#include "callbacks/core/grad_accum_callback.h"
#include "core/factory.h"
#include "data/data_loader.h"
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

/// Ranks that read files of their own may have got other ones. Samples are not read for it: each
/// rank reads its own alone.
std::string text_of(const DataLoader& train) {
  const LoaderOptions& options = train.options();
  std::string text = fmt::format("batches of {}\nshuffle {}\ndrop_last {}\n",
                                 options.batch_size,
                                 options.shuffle,
                                 options.drop_last);
  if (const auto samples = train.samples()) {
    text += fmt::format("{} samples\n", *samples);
  }
  return text;
}

std::string text_of(const std::vector<std::unique_ptr<Optimizer>>& optimizers) {
  std::string text;
  for (const auto& optimizer : optimizers) {
    text += fmt::format("{} \"{}\"\n", class_name(typeid(*optimizer)), optimizer->name());
    for (const ParamGroup& group : optimizer->groups()) {
      text += fmt::format("group \"{}\" of {} parameters", group.tag, group.params.size());
      for (const NamedTensor& number : group.numbers()) {
        text += fmt::format(" {} {}", number.first, number.second.item<double>());
      }
      text += "\n";
    }
  }
  return text;
}

}  // namespace

void require_same_start(const Trainer& trainer, const DataLoader& train) {
  const State& state = trainer.state();
  if (state.communicator->world_size() == 1) {
    return;
  }
  const GroupOptions& groups = trainer.slot<GradAccumCallback>().groups();
  const torch::nn::Module& module = state.model->module();
  require_same_facts(
      *state.communicator,
      {{"the checkpoint to begin with", beginning_of(state)},
       {"their parameters", text_of(named_parameters(module))},
       {"their buffers", text_of(named_buffers(module))},
       {"the optimizer", text_of(state.optimizers)},
       {"the training data", text_of(train)},
       {"the batches of an update",
        fmt::format("{}, micro-batches of {}", groups.batches, groups.micro_batch.value_or(0))},
       {"the numeric environment", text_of(current_environment(state.backend->device()))},
       {"the seed", std::to_string(state.seed)}});
}

}  // namespace rondo
