#include "callbacks/core/reproducibility_callback.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <utility>

#include "backends/generator_state.h"
#include "callbacks/core/device_of_run.h"
#include "callbacks/core/virtual_ranks.h"
#include "core/error.h"
#include "distributed/connect.h"
#include "distributed/launch_environment.h"
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

constexpr const char* kRanks = "virtual";

/// Virtual ranks of the run that was saved.
int64_t ranks_in(const StateDict& rng) {
  const StateValue* const ranks = rng.find(kRanks);
  return ranks != nullptr ? static_cast<int64_t>(ranks->as_dict().items().size()) : 1;
}

std::optional<int64_t> given_ranks(const Trainer& trainer) {
  const auto& options = trainer.options().distributed;
  return options ? options->virtual_ranks : std::nullopt;
}

/// Those of a run that says nothing of them, at its first start: one a process. A restart with
/// fewer processes before the first save must not make another run of it.
int64_t default_ranks(const Trainer& trainer) {
  const int64_t processes = trainer.state().communicator->world_size();
  const auto launched = read_launch_environment();
  return launched && launched->world_size == processes
             ? std::max<int64_t>(processes, launched->first_world_size)
             : processes;
}

/// Why a fit cannot go on with the virtual ranks of a checkpoint; "" when it can.
std::string problem_with(int64_t saved, const Trainer& trainer) {
  if (const std::optional<int64_t> given = given_ranks(trainer); given && *given != saved) {
    return fmt::format(
        "the checkpoint is of a run with {} virtual ranks, and distributed.virtual_ranks is {}: "
        "the results would differ. Set it to {}, or remove it",
        saved,
        *given,
        saved);
  }
  return problem_of_ranks(trainer.state().communicator->world_size(), saved);
}

std::string bytes_of(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.contiguous();
  return {static_cast<const char*>(plain.data_ptr()), plain.nbytes()};
}

/// The first process's seed.
uint64_t agreed_seed(Communicator& communicator, uint64_t seed) {
  at::Tensor value = at::empty({1}, at::kLong);
  *value.data_ptr<int64_t>() = static_cast<int64_t>(seed);
  communicator.broadcast(value, 0);
  return static_cast<uint64_t>(*value.data_ptr<int64_t>());
}

/// Without its index: a rank may continue on another GPU of its host.
std::string name_of(c10::Device device) {
  return c10::DeviceTypeName(device.type(), /*lower_case=*/true);
}

/// Null where the run that was saved had its tensors on the CPU.
const StateValue* saved_state(const StateDict& rng, c10::Device device) {
  return device.is_cpu() ? &rng.at("cpu") : rng.find(name_of(device));
}

}  // namespace

ReproducibilityCallback::ReproducibilityCallback() = default;

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
  trainer.state().seed = agreed_seed(*trainer.state().communicator, trainer.state().seed);
  // The slot `backend` is filled later, and complains of a device that is not there.
  if (const auto found = device_of_run(trainer); found && !found->is_cpu()) {
    devices_.push_back(*found);
  }
  enter();
  for (const c10::Device device : devices_) {
    seed_generator(trainer.state().seed, device);
  }
  use_ranks(trainer, given_ranks(trainer).value_or(default_ranks(trainer)));
}

void ReproducibilityCallback::use_ranks(Trainer& trainer, int64_t count) {
  if (count == 1 && trainer.state().communicator->world_size() == 1) {
    of_ranks_.clear();
    return;
  }
  if (!ranks_) {
    ranks_ = std::make_unique<VirtualRanks>(*trainer.state().communicator, count);
  } else {
    ranks_->set_count(count);
  }
  const RngScope inside(trainer);
  const std::vector<at::Tensor> now = states_of(devices_);
  of_ranks_.clear();
  for (int64_t rank = 0; rank < count; ++rank) {
    for (const c10::Device device : devices_) {
      seed_generator(trainer.state().seed + static_cast<uint64_t>(rank), device);
    }
    of_ranks_.push_back(states_of(devices_));
  }
  set_states(devices_, now);
}

void ReproducibilityCallback::swap_rank(int64_t rank) {
  std::vector<at::Tensor>& other = of_ranks_[static_cast<size_t>(rank)];
  std::vector<at::Tensor> now = states_of(devices_);
  set_states(devices_, other);
  other = std::move(now);
}

NamedTensors ReproducibilityCallback::captured_state() {
  return ranks_ ? ranks_->captured_state() : NamedTensors();
}

void ReproducibilityCallback::on_enter_fit(
    Trainer&, Cleanup& cleanup, const DataLoader&, const Loaders&, Loop&) {
  is_fitting_ = true;
  if (ranks_) {
    ranks_->forget_agreed();
  }
  cleanup.push([this](const std::exception_ptr&) { is_fitting_ = false; });
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
    rng.set(name_of(device), generator_state(device));
  }
  rng.set("seed", static_cast<int64_t>(trainer.state().seed));
  save_ranks(trainer, rng);
  state.set("rng", std::move(rng));
}

// Each process knows those that it works for.
void ReproducibilityCallback::save_ranks(Trainer& trainer, StateDict& rng) {
  if (of_ranks_.empty()) {
    return;
  }
  const RankRange range = ranks_->range();
  std::string own;
  for (int64_t rank = range.first; rank < range.first + range.own; ++rank) {
    for (const at::Tensor& of_device : of_ranks_[static_cast<size_t>(rank)]) {
      own += bytes_of(of_device);
    }
  }
  std::string all;
  for (const std::string& part : trainer.state().communicator->all_gather(own)) {
    all += part;
  }
  StateDict ranks;
  const char* next = all.data();
  for (size_t rank = 0; rank < of_ranks_.size(); ++rank) {
    StateDict of_rank;
    for (size_t d = 0; d < devices_.size(); ++d) {
      at::Tensor copy = at::empty_like(of_ranks_[rank][d]);
      std::memcpy(copy.data_ptr(), next, copy.nbytes());
      next += copy.nbytes();
      of_rank.set(name_of(devices_[d]), copy);
    }
    ranks.set(std::to_string(rank), std::move(of_rank));
  }
  rng.set(kRanks, std::move(ranks));
}

void ReproducibilityCallback::load_ranks(Trainer& trainer, const StateDict& rng) {
  if (!problem_with(ranks_in(rng), trainer).empty()) {
    return;  // an evaluation, whose numbers are not those of virtual ranks
  }
  use_ranks(trainer, ranks_in(rng));
  const StateValue* const saved = rng.find(kRanks);
  for (size_t rank = 0; saved != nullptr && rank < of_ranks_.size(); ++rank) {
    const StateDict& of_rank = saved->as_dict().at(std::to_string(rank)).as_dict();
    for (size_t d = 0; d < devices_.size(); ++d) {
      if (const StateValue* const state = saved_state(of_rank, devices_[d])) {
        of_ranks_[rank][d] = state->as_tensor().clone();
      }
    }
  }
}

void ReproducibilityCallback::check_checkpoint(Trainer& trainer, const StateDict& state) {
  const StateValue* saved = state.find("rng");
  if (saved == nullptr) {
    return;
  }
  const StateDict& rng = saved->as_dict();
  rng.at("seed").as_int();
  if (const std::string problem = problem_with(ranks_in(rng), trainer);
      is_fitting_ && !problem.empty()) {
    throw CheckpointError(problem);
  }
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
    trainer.log().info("the checkpoint holds no random state: the run continues with its own");
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
    trainer.log().warning(
        fmt::format("the run continues with the checkpoint's seed {}, not with {}",
                    trainer.state().seed,
                    *configured));
  }
  load_ranks(trainer, rng);
}

RankRandom::RankRandom(Trainer& trainer, int64_t rank)
    : random_(*trainer.step_slots().reproducibility), rank_(rank) {
  random_.swap_rank(rank_);
}

RankRandom::~RankRandom() {
  random_.swap_rank(rank_);
}

RngScope::RngScope(Trainer& trainer) : random_(*trainer.step_slots().reproducibility) {
  random_.enter();
}

RngScope::~RngScope() {
  random_.leave();
}

}  // namespace rondo
