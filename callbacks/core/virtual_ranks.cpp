#include "callbacks/core/virtual_ranks.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "callbacks/core/early_exit_callback.h"
#include "callbacks/core/reproducibility_callback.h"
#include "core/error.h"
#include "core/flat_memory.h"
#include "distributed/connect.h"
#include "models/model_state.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// In which changes are added: exact for counts, and not in half precision.
at::ScalarType dtype_of_changes(const at::Tensor& tensor) {
  if (!tensor.is_floating_point()) {
    return at::kDouble;
  }
  const bool is_half = tensor.element_size() < 4;
  return is_half ? at::kFloat : tensor.scalar_type();
}

/// What a virtual rank can have its own of: masks and bytes are constants of a model.
bool has_changes(const at::Tensor& tensor) {
  return tensor.defined() && !tensor.is_complex() && tensor.scalar_type() != at::kBool &&
         tensor.scalar_type() != at::kByte;
}

/// Whether a parameter requires a gradient: it may have been frozen.
bool is_trained(const Optimizer& optimizer, const std::string& name) {
  for (const NamedTensor& parameter : optimizer.trained()) {
    if (parameter.first == name) {
      return parameter.second.requires_grad();
    }
  }
  return false;
}

std::vector<at::Tensor> buffers_of(const Trainer& trainer) {
  std::vector<at::Tensor> buffers;
  for (const NamedTensor& buffer : named_buffers(trainer.state().model->module())) {
    const auto is_it = [&](const at::Tensor& other) { return other.is_same(buffer.second); };
    if (has_changes(buffer.second) && std::none_of(buffers.begin(), buffers.end(), is_it)) {
      buffers.push_back(buffer.second);
    }
  }
  return buffers;
}

/// One for each parameter that requires a gradient, in an order that stays: zeros where the
/// backward did not reach it, so that all virtual ranks have the same ones. Undefined for others.
std::vector<at::Tensor> whole_gradients(Optimizer& optimizer) {
  optimizer.gather_grads();
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (ParamGroup& group : optimizer.groups()) {
    for (Parameter& parameter : group.params) {
      at::Tensor& gradient = parameter.value.mutable_grad();
      if (!gradient.defined() && is_trained(optimizer, parameter.name)) {
        gradient = at::zeros_like(parameter.value.detach());
      }
      if (gradient.defined() && gradient.layout() != at::kStrided) {
        throw NotSupportedError(fmt::format(
            "parameter \"{}\" has a sparse gradient, which virtual ranks cannot add; use dense "
            "ones (an embedding: sparse = false)",
            parameter.name));
      }
      gradients.push_back(gradient);
    }
  }
  return gradients;
}

at::Tensor number(double value) {
  return at::full({}, value, at::kDouble);
}

void set(const at::Tensor& number, double value) {
  *number.data_ptr<double>() = value;
}

}  // namespace

void RankedState::begin(std::vector<at::Tensor> tensors) {
  const at::NoGradGuard no_grad;
  tensors_ = std::move(tensors);
  if (starts_.size() != tensors_.size()) {
    FlatMemory memory;
    for (const at::Tensor& tensor : tensors_) {
      memory.add_like(tensor);
    }
    starts_ = tensors_.empty() ? std::vector<at::Tensor>() : memory.allocate();
  }
  for (size_t i = 0; i < tensors_.size(); ++i) {
    starts_[i].copy_(tensors_[i]);
  }
}

std::vector<at::Tensor> RankedState::changes(const at::Tensor& share,
                                             const at::Tensor& is_real,
                                             const RankEnd& end) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> changes;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const at::ScalarType dtype = dtype_of_changes(tensors_[i]);
    const at::Tensor& weight = tensors_[i].is_floating_point() ? share : is_real;
    changes.push_back(tensors_[i].to(dtype).sub(starts_[i].to(dtype)).mul(weight.to(dtype)));
  }
  sums_.add(changes, end);
  return changes;
}

void RankedState::take(const std::vector<at::Tensor>& changes, const RankEnd& end) {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (end.is_last) {
      tensors_[i].copy_(starts_[i].to(changes[i].scalar_type()).add(changes[i]));
    } else {
      tensors_[i].copy_(starts_[i]);
    }
  }
}

void RankedState::append_to(NamedTensors& all, const std::string& name) const {
  for (size_t i = 0; i < starts_.size(); ++i) {
    all.emplace_back(name + "/start/" + std::to_string(i), starts_[i]);
  }
  sums_.append_to(all, name);
}

VirtualRanks::VirtualRanks(Communicator& communicator, int64_t count)
    : communicator_(communicator),
      count_(1),
      share_(number(1.0)),
      is_real_(number(1.0)),
      asked_(at::zeros({AskedCount}, at::kDouble)),
      agreed_(at::zeros({AskedCount}, at::kDouble)) {
  set_count(count);
}

void VirtualRanks::set_count(int64_t count) {
  if (count < 1 || (count & (count - 1)) != 0) {
    throw UsageError(
        fmt::format("distributed.virtual_ranks: expected a power of two, got {}", count));
  }
  if (const std::string problem = problem_of_ranks(communicator_.world_size(), count);
      !problem.empty()) {
    throw UsageError(problem);
  }
  count_ = count;
}

RankRange VirtualRanks::range() const {
  const int64_t own = count_ / communicator_.world_size();
  return {count_, communicator_.rank() * own, own};
}

std::string VirtualRanks::step_name() const {
  return end_ ? fmt::format("/adds_{}", end_->earlier_sums) : "";
}

void VirtualRanks::begin_batch(Trainer& trainer, const GroupedBatch& batch) {
  current_ = batch.rank;
  end_.reset();
  if (batch.ends_rank > 0) {
    end_ = RankEnd{static_cast<size_t>(batch.ends_rank) - 1, batch.position.is_last};
  }
  set(share_, batch.share_of_rank);
  set(is_real_, batch.share_of_rank > 0.0 ? 1.0 : 0.0);
  if (!has_peers()) {
    return;
  }
  auto* const asked = asked_.data_ptr<double>();
  std::fill(asked, asked + AskedCount, 0.0);
  asked[AskedStop] = trainer.stop_reason() != nullptr ? 1.0 : 0.0;
  asked[AskedExit] = trainer.step_slots().early_exit->should_exit() ? 1.0 : 0.0;
  if (end_ && current_ == range().first) {
    asked[AskedSave] = trainer.take_save_request() ? 1.0 : 0.0;
    asked[AskedSeconds] = current_ == 0 ? std::exchange(seconds_, 0.0) : 0.0;
  }
  is_last_of_group_ = batch.position.is_last;
}

double VirtualRanks::agreed_seconds(Trainer& trainer, double own) {
  if (!has_peers()) {
    return own;
  }
  seconds_ += own;
  if (is_last_of_group_ && is_stop_agreed() && trainer.stop_reason() == nullptr) {
    trainer.request_stop("another process was asked to stop");
  }
  return is_last_of_group_ ? agreed_.data_ptr<double>()[AskedSeconds] : 0.0;
}

bool VirtualRanks::has_agreed(Asked what) const {
  return agreed_.data_ptr<double>()[what] > 0.0;
}

void VirtualRanks::begin_step(Trainer& trainer) {
  has_summed_ = false;
  if (trainer.state().position.is_first) {
    buffers_.begin(buffers_of(trainer));
  }
}

void VirtualRanks::require_no_update() const {
  if (has_summed_) {
    throw UsageError(
        "the step computes gradients after an update, which not every virtual rank would see: with "
        "distributed.virtual_ranks > 1 all backward passes of a step must come before its updates");
  }
}

void VirtualRanks::sum_gradients(Trainer& trainer, Optimizer& optimizer) {
  std::vector<at::Tensor> values = whole_gradients(optimizer);
  gradients_[optimizer.name()].add(values, *end_);
  const bool are_buffers_due = !std::exchange(has_summed_, true);
  std::vector<at::Tensor> changes;
  if (are_buffers_due) {
    changes = buffers_.changes(share_, is_real_, *end_);
    values.insert(values.end(), changes.begin(), changes.end());
  }
  sum_over_processes(trainer, std::move(values));
  if (are_buffers_due) {
    buffers_.take(changes, *end_);
  }
}

void VirtualRanks::end_step(Trainer& trainer) {
  if (!end_ || has_summed_) {
    return;
  }
  if (!end_->is_last) {
    for (const auto& optimizer : trainer.state().optimizers) {
      gradients_[optimizer->name()].add(whole_gradients(*optimizer), *end_);
    }
  }
  sum_state(trainer, buffers_, share_);
}

void VirtualRanks::sum_losses(Trainer& trainer, std::vector<at::Tensor> losses) {
  if (!end_) {
    return;
  }
  if (has_peers()) {
    const at::NoGradGuard no_grad;
    agreed_.copy_(asked_);
    losses.push_back(agreed_);
  }
  losses_.add(losses, *end_);
  if (end_->is_last) {
    sum_over_processes(trainer, std::move(losses));
  }
}

void VirtualRanks::sum_metrics(Trainer& trainer) {
  if (end_) {
    sum_state(trainer, metrics_, is_real_);
  }
}

void VirtualRanks::sum_state(Trainer& trainer, RankedState& state, const at::Tensor& share) {
  const std::vector<at::Tensor> changes = state.changes(share, is_real_, *end_);
  if (end_->is_last) {
    sum_over_processes(trainer, changes);
  }
  state.take(changes, *end_);
}

// A host call is what all ways of running a step make exactly once: as written, recorded, replayed,
// and compared with what is written.
void VirtualRanks::sum_over_processes(Trainer& trainer, std::vector<at::Tensor> values) {
  const auto is_nothing = [](const at::Tensor& value) {
    return !value.defined() || value.numel() == 0;
  };
  values.erase(std::remove_if(values.begin(), values.end(), is_nothing), values.end());
  if (has_peers() && !values.empty()) {
    trainer.host_call("all_reduce", std::move(values), [this](const std::vector<at::Tensor>& sums) {
      rooms_.each_dtype(sums, [this](at::Tensor& flat) { communicator_.all_reduce(flat); });
    });
  }
}

NamedTensors VirtualRanks::captured_state() const {
  NamedTensors all = {
      {"share_of_rank", share_}, {"is_real", is_real_}, {"asked", asked_}, {"agreed", agreed_}};
  for (const auto& [optimizer, sums] : gradients_) {
    sums.append_to(all, "gradients/" + optimizer);
  }
  losses_.append_to(all, "losses");
  buffers_.append_to(all, "buffers");
  metrics_.append_to(all, "metrics");
  return all;
}

VirtualRanks* ranks_of(const Trainer& trainer) {
  return trainer.step_slots().reproducibility->ranks();
}

}  // namespace rondo
