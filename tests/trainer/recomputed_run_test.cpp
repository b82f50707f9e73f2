// Runs whose models compute blocks again in the backward pass.

#include <doctest/doctest.h>
#include <torch/types.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "backends/step_report.h"
#include "data/tensor_dataset.h"
#include "models/builtin/deep_resnet.h"
#include "models/builtin/gpt.h"
#include "models/builtin/vit.h"
#include "optim/adam.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

DataLoader loader_over(TensorMap tensors) {
  LoaderOptions options;
  options.batch_size = 4;
  options.shuffle = true;
  options.prefetch = 0;
  return DataLoader(from_tensors(std::move(tensors)), options);
}

DataLoader images_of(int64_t side) {
  torch::manual_seed(1);
  const at::Tensor x = torch::randn({16, 3, side, side});
  return loader_over({{"image", x}, {"label", torch::arange(16) % 3}});
}

DataLoader small_images() {
  return images_of(16);
}

/// Whose results take more memory than the weights.
DataLoader larger_images() {
  return images_of(32);
}

DataLoader small_tokens() {
  torch::manual_seed(1);
  const at::Tensor all = torch::randint(0, 20, {16, 25});
  return loader_over({{"tokens", all.narrow(1, 0, 24).contiguous()},
                      {"targets", all.narrow(1, 1, 24).contiguous()}});
}

/// A model with and without `recompute`, and what it trains on.
struct RecomputedCase {
  std::string name;
  std::function<Factory<Model>(bool recomputes)> model;
  std::function<DataLoader()> loader;
  std::string precision = "fp32";
  int64_t accumulation = 1;
};

Factory<Model> small_gpt(bool recomputes) {
  Gpt::Options options;
  options.layers = 3;
  options.heads = 2;
  options.width = 32;
  options.context = 24;
  options.vocabulary = 20;
  options.dropout = 0.2;
  options.recompute = recomputes;
  return use<Gpt>(options);
}

Factory<Model> small_vit(bool recomputes) {
  Vit::Options options;
  options.image_size = 16;
  options.patch = 4;
  options.classes = 3;
  options.layers = 3;
  options.heads = 2;
  options.width = 32;
  options.dropout = 0.1;
  options.recompute = recomputes;
  return use<Vit>(options);
}

Factory<Model> small_res_net(bool recomputes) {
  DeepResNet::Options options;
  options.depth = 18;
  options.width = 4;
  options.stem = "cifar";
  options.classes = 3;
  options.recompute = recomputes;
  return use<DeepResNet>(options);
}

std::vector<RecomputedCase> recomputed_cases() {
  return {{"gpt", small_gpt, small_tokens},
          {"gpt, bf16", small_gpt, small_tokens, "bf16"},
          {"gpt, fp16 emulated", small_gpt, small_tokens, "fp16"},
          {"gpt, accumulation", small_gpt, small_tokens, "fp32", 2},
          {"vit", small_vit, small_images},
          {"resnet", small_res_net, larger_images},
          {"resnet, accumulation", small_res_net, larger_images, "fp32", 2}};
}

struct RecomputedEnd {
  StateDict bits;
  int64_t arena = 0;  ///< bytes, of the step of training
};

RecomputedEnd recomputed_end(const RecomputedCase& one, bool recomputes, const std::string& mode) {
  const TempDir dir;
  TrainerOptions options = tiny_options(dir.path());
  options.model = one.model(recomputes);
  options.optimizer = use<AdamW>({1e-3});
  options.backend.mode = mode;
  options.precision.dtype = one.precision;
  options.precision.on_unsupported = "emulate";
  options.loop.max_steps = 6;
  options.loop.grad_accum_steps = one.accumulation;
  options.checkpoint.steps = 0;
  Trainer trainer(options, quiet_log());
  trainer.fit(one.loader());
  RecomputedEnd result;
  for (const StepReport& report : trainer.state().backend->reports()) {
    result.arena = std::max(result.arena, report.memory.arena);
  }
  result.bits = bits_of(trainer);
  return result;
}

}  // namespace

TEST_SUITE_BEGIN("trainer/recomputed_run");

TEST_CASE("a run that computes blocks again has the bits of one that keeps them") {
  for (const RecomputedCase& one : recomputed_cases()) {
    CAPTURE(one.name);
    const RecomputedEnd kept = recomputed_end(one, false, "eager");
    CHECK(first_difference(kept.bits, recomputed_end(one, true, "eager").bits) == "");
    const RecomputedEnd traced = recomputed_end(one, true, "traced");
    CHECK(first_difference(kept.bits, traced.bits) == "");
    CHECK(traced.arena < recomputed_end(one, false, "traced").arena);
  }
}

TEST_SUITE_END();
