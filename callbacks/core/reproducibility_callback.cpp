#include "callbacks/core/reproducibility_callback.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <random>

#include "backends/generator_state.h"
#include "core/error.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

std::vector<at::Tensor> states_of(const std::vector<c10::Device>& devices) {
  std::vector<at::Tensor> states;
  states.reserve(devices.size());
  for (const c10::Device device : devices) {
    states.push_back(generator_state(device));
  }
  return states;
}

void set_states(const std::vector<c10::Device>& devices, const std::vector<at::Tensor>& states) {
  for (size_t i = 0; i < states.size(); ++i) {
    set_generator_state(states[i], devices[i]);
  }
}

/// Null where the run that was saved had its tensors on the CPU.
const StateValue* saved_state(const StateDict& rng, c10::Device device) {
  return device.is_cpu() ? &rng.at("cpu") : rng.find(device.str());
}

}  // namespace

ReproducibilityCallback::~ReproducibilityCallback() {
  if (depth_ > 0) {
    set_states(devices_, outer_);
  }
}

void ReproducibilityCallback::pre_setup(Trainer& trainer) {
  if (trainer.options().seed) {
    trainer.state().seed = *trainer.options().seed;
  } else {
    trainer.state().seed = std::random_device{}();
    trainer.log().warning(
        fmt::format("no seed was given: this run drew seed {}; set seed to make runs repeatable",
                    trainer.state().seed));
  }
  // The slot `backend` is filled later, and complains of a device that is not there.
  if (trainer.options().backend.device == "cuda" && at::hasCUDA()) {
    devices_.emplace_back(c10::kCUDA);
  }
  enter();
  for (const c10::Device device : devices_) {
    seed_generator(trainer.state().seed, device);
  }
}

void ReproducibilityCallback::enter() {
  if (depth_++ > 0) {
    return;
  }
  outer_ = states_of(devices_);
  set_states(devices_, own_);
}

void ReproducibilityCallback::leave() {
  if (--depth_ > 0) {
    return;
  }
  own_ = states_of(devices_);
  set_states(devices_, outer_);
}

void ReproducibilityCallback::on_save_checkpoint(Trainer& trainer, StateDict& state) {
  const RngScope inside(trainer);
  StateDict rng;
  for (const c10::Device device : devices_) {
    rng.set(device.str(), generator_state(device));
  }
  rng.set("seed", static_cast<int64_t>(trainer.state().seed));
  state.set("rng", std::move(rng));
}

void ReproducibilityCallback::check_checkpoint(Trainer&, const StateDict& state) {
  const StateValue* saved = state.find("rng");
  if (saved == nullptr) {
    return;
  }
  const StateDict& rng = saved->as_dict();
  rng.at("seed").as_int();
  for (const c10::Device device : devices_) {
    const StateValue own = generator_state(device);
    const StateValue* other = saved_state(rng, device);
    if (other != nullptr && own.kind() != other->kind()) {
      throw CheckpointError(fmt::format(
          "the checkpoint's random state: expected {}, found {}", own.kind(), other->kind()));
    }
  }
}

void ReproducibilityCallback::on_load_checkpoint(Trainer& trainer, const StateDict& state) {
  const StateValue* saved = state.find("rng");
  if (saved == nullptr) {
    trainer.log().info("the checkpoint holds no random state: the run goes on with its own");
    return;
  }
  const StateDict& rng = saved->as_dict();
  const RngScope inside(trainer);
  for (const c10::Device device : devices_) {
    if (const StateValue* own = saved_state(rng, device)) {
      set_generator_state(own->as_tensor(), device);
    }
  }
  trainer.state().seed = static_cast<uint64_t>(rng.at("seed").as_int());
  const auto configured = trainer.options().seed;
  if (configured && *configured != trainer.state().seed) {
    trainer.log().warning(fmt::format("the run goes on with the checkpoint's seed {}, not with {}",
                                      trainer.state().seed,
                                      *configured));
  }
}

RngScope::RngScope(Trainer& trainer) : random_(*trainer.step_slots().reproducibility) {
  random_.enter();
}

RngScope::~RngScope() {
  random_.leave();
}

}  // namespace rondo
