#include "optim/torch_optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <torch/optim/lbfgs.h>
#include <torch/serialize/archive.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <sstream>
#include <type_traits>

#include "core/error.h"

namespace rondo {

namespace {

/// Those that rondo has under the same name, with the same bits.
constexpr std::array kOwn = {"Adagrad", "Adam", "AdamW", "RMSprop", "SGD"};

/// LibTorch cannot save the scratch memory of LBFGS while parts of it are undefined.
void drop_scratch(torch::optim::Optimizer& optimizer) {
  for (auto& [key, state] : optimizer.state()) {
    if (auto* lbfgs = dynamic_cast<torch::optim::LBFGSParamState*>(state.get())) {
      lbfgs->al(std::decay_t<decltype(lbfgs->al())>());
    }
  }
}

at::Tensor bytes_of(torch::optim::Optimizer& optimizer) {
  drop_scratch(optimizer);
  torch::serialize::OutputArchive archive;
  optimizer.save(archive);
  std::ostringstream stream;
  archive.save_to(stream);
  const std::string text = stream.str();
  at::Tensor bytes = at::empty({static_cast<int64_t>(text.size())}, at::kByte);
  std::memcpy(bytes.data_ptr(), text.data(), text.size());
  return bytes;
}

}  // namespace

TorchOptimizer::TorchOptimizer(const Options& options)
    : Optimizer({{"lr", 0.0}}, {}), options_(options) {
  if (!options_.make) {
    throw UsageError("TorchOptimizer: expected a function that makes an optimizer: use from_torch");
  }
}

void TorchOptimizer::on_attached() {
  make_inner();
  *groups()[0]["lr"].data_ptr<double>() = written_lr_;
}

void TorchOptimizer::make_inner() {
  std::vector<at::Tensor> values;
  for (const Parameter& parameter : groups()[0].params) {
    values.push_back(parameter.value);
  }
  schedulers_.clear();
  inner_ = options_.make(values);
  for (const MakeScheduler& make : options_.schedulers) {
    schedulers_.push_back(make(*inner_));
  }
  written_lr_ = inner_lr();
  updates_ = 0;
}

double TorchOptimizer::inner_lr() const {
  return inner_->param_groups().at(0).options().get_lr();
}

void TorchOptimizer::update(ParamGroup& group) {
  double& lr = *group["lr"].data_ptr<double>();
  if (lr != written_lr_) {
    for (torch::optim::OptimizerParamGroup& inner : inner_->param_groups()) {
      inner.options().set_lr(lr);
    }
  }
  if (options_.needs_closure) {
    if (!evaluate()) {
      throw UsageError(
          fmt::format("{} computes the loss of a batch several times in an update, which a group "
                      "of batches has not: set loop.grad_accum_steps = 1",
                      class_name(typeid(*inner_))));
    }
    inner_->step([this] {
      const at::AutoGradMode with_gradients(true);
      return evaluate()();
    });
  } else {
    inner_->step();
  }
  for (const auto& scheduler : schedulers_) {
    scheduler->step();
  }
  ++updates_;
  written_lr_ = inner_lr();
  lr = written_lr_;
}

std::string TorchOptimizer::eager_only() const {
  const torch::optim::Optimizer& inner = *inner_;
  const std::string name = class_name(typeid(inner));
  const bool is_own = std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end();
  return fmt::format(
      "torch::optim::{} counts on the host, which a recorded step cannot repeat: {}set "
      "backend.mode = \"eager\"",
      name,
      is_own ? fmt::format("use rondo's {} ([trainer.init.optimizer.{}]), which has its bits, or ",
                           name == "SGD" ? "Sgd" : name,
                           name)
             : "");
}

StateDict TorchOptimizer::state_dict() const {
  torch::optim::Optimizer& inner = *inner_;
  return {{"class", class_name(typeid(inner))},
          {"updates", updates_},
          {"lr", written_lr_},
          {"torch", bytes_of(inner)}};
}

// Schedulers of LibTorch save nothing: they are moved on as far as they were.
void TorchOptimizer::load(const StateDict& state) {
  const torch::optim::Optimizer& inner = *inner_;
  const std::string expected = class_name(typeid(inner));
  const StateValue* saved = state.find("class");
  if (saved == nullptr || saved->as_string() != expected) {
    throw CheckpointError(
        fmt::format("optimizer state: expected that of torch::optim::{}, found {}",
                    expected,
                    saved == nullptr ? "that of another kind" : saved->as_string()));
  }
  const at::Tensor& bytes = state.at("torch").as_tensor();
  const int64_t updates = state.at("updates").as_int();
  const double lr = state.at("lr").as_double();
  torch::serialize::InputArchive archive;
  archive.load_from(static_cast<const char*>(bytes.data_ptr()), static_cast<size_t>(bytes.numel()));
  make_inner();
  for (int64_t i = 0; i < updates; ++i) {
    for (const auto& scheduler : schedulers_) {
      scheduler->step();
    }
  }
  inner_->load(archive);
  updates_ = updates;
  written_lr_ = lr;
  *groups()[0]["lr"].data_ptr<double>() = lr;
}

}  // namespace rondo
