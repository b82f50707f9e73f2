#include "callbacks/reproducibility_callback.h"

#include <fmt/format.h>

#include <random>

#include "backends/generator_state.h"
#include "core/error.h"
#include "trainer/trainer.h"

namespace rondo {

ReproducibilityCallback::~ReproducibilityCallback() {
  if (depth_ > 0) {
    set_generator_state(outer_);
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
  enter();
  seed_generator(trainer.state().seed);
}

void ReproducibilityCallback::enter() {
  if (depth_++ > 0) {
    return;
  }
  outer_ = generator_state();
  if (own_.defined()) {
    set_generator_state(own_);
  }
}

void ReproducibilityCallback::leave() {
  if (--depth_ > 0) {
    return;
  }
  own_ = generator_state();
  set_generator_state(outer_);
}

void ReproducibilityCallback::on_save_checkpoint(Trainer& trainer, StateDict& state) {
  const RngScope inside(trainer);
  state.set(
      "rng",
      StateDict{{"cpu", generator_state()}, {"seed", static_cast<int64_t>(trainer.state().seed)}});
}

void ReproducibilityCallback::check_checkpoint(Trainer&, const StateDict& state) {
  const StateValue* saved = state.find("rng");
  if (saved == nullptr) {
    return;
  }
  const StateDict& rng = saved->as_dict();
  rng.at("seed").as_int();
  const at::Tensor own = generator_state();
  if (StateValue(own).kind() != rng.at("cpu").kind()) {
    throw CheckpointError(fmt::format("the checkpoint's random state: expected {}, found {}",
                                      StateValue(own).kind(),
                                      rng.at("cpu").kind()));
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
  set_generator_state(rng.at("cpu").as_tensor());
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
