#include "callbacks/builtin/scoped_flags.h"

#include <ATen/Context.h>

#include "core/registry.h"

namespace rondo {

namespace {

/// Sets a flag where one is wanted and gives the old value back when the scope is closed.
template <class Get, class Set>
void set_scoped(const std::optional<bool>& wanted, Cleanup& cleanup, Get get, Set set) {
  if (wanted) {
    const bool before = get();
    set(*wanted);
    cleanup.push([set, before](const std::exception_ptr&) { set(before); });
  }
}

void set_scoped(const TorchFlags& flags, Cleanup& cleanup) {
  at::Context& context = at::globalContext();
  set_scoped(
      flags.deterministic_algorithms,
      cleanup,
      [&] { return context.deterministicAlgorithms(); },
      [&](bool on) { context.setDeterministicAlgorithms(on, /*warn_only=*/false); });
  set_scoped(
      flags.benchmark_cudnn,
      cleanup,
      [&] { return context.benchmarkCuDNN(); },
      [&](bool on) { context.setBenchmarkCuDNN(on); });
  set_scoped(
      flags.tf32_matmul,
      cleanup,
      [&] { return context.allowTF32CuBLAS(); },
      [&](bool on) { context.setAllowTF32CuBLAS(on); });
  set_scoped(
      flags.tf32_cudnn,
      cleanup,
      [&] { return context.allowTF32CuDNN(); },
      [&](bool on) { context.setAllowTF32CuDNN(on); });
}

void add_keys(KeyTable<TorchFlags>& keys) {
  keys.key("deterministic_algorithms",
           &TorchFlags::deterministic_algorithms,
           "operators without a deterministic form throw")
      .key("benchmark_cudnn", &TorchFlags::benchmark_cudnn, "cuDNN tries which kernel is fastest")
      .key("tf32_matmul", &TorchFlags::tf32_matmul, "TF32 in matrix products on CUDA")
      .key("tf32_cudnn", &TorchFlags::tf32_cudnn, "TF32 in cuDNN");
}

}  // namespace

void ScopedTrainFlags::on_enter_train(
    Trainer&, Cleanup& cleanup, const DataLoader&, Loop&, int64_t) {
  set_scoped(options_, cleanup);
}

void ScopedValidateFlags::on_enter_validate(Trainer&, Cleanup& cleanup, const DataLoader&, Loop&) {
  set_scoped(options_, cleanup);
}

void GlobalFlags::pre_setup(Trainer&) {
  set_scoped(options_, give_back_);
}

void register_scoped_flags(Registry<Callback>& registry) {
  add_keys(registry.add<GlobalFlags>(
      "GlobalFlags", "Sets LibTorch's global switches as long as the Trainer lives."));
  add_keys(registry.add<ScopedTrainFlags>("ScopedTrainFlags",
                                          "Sets LibTorch's global switches while training."));
  add_keys(registry.add<ScopedValidateFlags>("ScopedValidateFlags",
                                             "Sets LibTorch's global switches while validating."));
}

}  // namespace rondo
