#include "optim/optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/flat_memory.h"
#include "core/glob.h"
#include "optim/update_sharing.h"

namespace rondo {

namespace {

// What every group may set besides the optimizer's numbers.
constexpr const char* kLrScale = "adjust_learning_rate";
constexpr const char* kMostDimensions = "max_dims";

std::optional<double> own_number(const ParamGroupOptions& group, const std::string& name) {
  for (const auto& number : group.numbers) {
    if (number.first == name) {
      return number.second;
    }
  }
  return std::nullopt;
}

std::vector<std::string> names_of(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const NamedTensor& named : tensors) {
    names.push_back(named.first);
  }
  return names;
}

at::Tensor* find(NamedTensors& tensors, std::string_view name) {
  for (NamedTensor& named : tensors) {
    if (named.first == name) {
      return &named.second;
    }
  }
  return nullptr;
}

at::Tensor number_tensor(double value) {
  return at::scalar_tensor(value, at::kDouble);
}

/// Those to train: each tensor once, all on one device.
NamedTensors trainable(const NamedTensors& parameters) {
  NamedTensors chosen;
  for (const NamedTensor& parameter : parameters) {
    const auto is_same = [&](const NamedTensor& other) {
      return other.second.is_same(parameter.second);
    };
    if (parameter.second.requires_grad() && std::none_of(chosen.begin(), chosen.end(), is_same)) {
      chosen.push_back(parameter);
    }
  }
  if (chosen.empty()) {
    throw UsageError("none of the model's parameters requires a gradient: nothing to train");
  }
  const c10::Device device = chosen.front().second.device();
  for (const NamedTensor& parameter : chosen) {
    if (parameter.second.layout() != at::kStrided) {
      throw NotSupportedError(
          fmt::format("parameter \"{}\" is {}; rondo's optimizers take dense ones",
                      parameter.first,
                      c10::str(parameter.second.layout())));
    }
    if (parameter.second.device() != device) {
      throw NotSupportedError(
          fmt::format("parameter \"{}\" is on {}, \"{}\" on {}; expected one device",
                      chosen.front().first,
                      device.str(),
                      parameter.first,
                      parameter.second.device().str()));
    }
  }
  return chosen;
}

/// In a block of their own: parameters may outlive what the optimizer keeps for them.
void lay_out(const NamedTensors& parameters) {
  FlatMemory memory;
  for (const NamedTensor& parameter : parameters) {
    if (FlatMemory::may_move(parameter.second)) {
      memory.move(parameter.second);
    }
  }
  memory.allocate();
}

bool is_half(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBFloat16 || tensor.scalar_type() == at::kHalf;
}

/// Float32 copies of the parameters in half precision, in one allocation.
std::vector<at::Tensor> make_masters(const NamedTensors& parameters) {
  FlatMemory memory;
  for (const NamedTensor& parameter : parameters) {
    if (is_half(parameter.second)) {
      memory.add_like(at::empty_like(parameter.second.detach(), at::kFloat));
    }
  }
  const std::vector<at::Tensor> made = memory.allocate();
  std::vector<at::Tensor> masters(parameters.size());
  auto next = made.begin();
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (is_half(parameters[i].second)) {
      masters[i] = *next++;
      masters[i].copy_(parameters[i].second.detach());
    }
  }
  return masters;
}

bool matches(const ParamGroupOptions& group, const NamedTensor& parameter) {
  const std::optional<double> most = own_number(group, kMostDimensions);
  if (most && static_cast<double>(parameter.second.dim()) > *most) {
    return false;
  }
  return matches_any(group.params, parameter.first);
}

void check_dense(const NamedTensor& parameter) {
  const at::Tensor& grad = parameter.second.grad();
  if (grad.defined() && grad.layout() != at::kStrided) {
    throw NotSupportedError(
        fmt::format("parameter \"{}\" has a sparse gradient; rondo's optimizers take dense ones "
                    "(an embedding: sparse = false)",
                    parameter.first));
  }
}

}  // namespace

Parameter::Parameter(std::string parameter_name, at::Tensor tensor, NamedTensors state)
    : name(std::move(parameter_name)), value(std::move(tensor)), states_(std::move(state)) {}

at::Tensor& Parameter::state(std::string_view state_name) {
  if (at::Tensor* found = find(states_, state_name)) {
    return *found;
  }
  throw UsageError(fmt::format("the optimizer keeps no \"{}\" for parameter \"{}\"{}",
                               state_name,
                               name,
                               suggestion(state_name, names_of(states_))));
}

at::Tensor& ParamGroup::operator[](std::string_view number) {
  if (at::Tensor* found = find(numbers_, number)) {
    return *found;
  }
  throw UsageError(fmt::format(
      "the optimizer has no number \"{}\"{}", number, suggestion(number, names_of(numbers_))));
}

Optimizer::Optimizer(Numbers numbers,
                     std::vector<std::string> state_names,
                     std::vector<ParamGroupOptions> groups,
                     std::vector<std::string> counters)
    : numbers_(std::move(numbers)),
      state_names_(std::move(state_names)),
      group_options_(std::move(groups)),
      counters_(std::move(counters)) {
  std::vector<std::string> known;
  for (const auto& number : numbers_) {
    known.push_back(number.first);
  }
  known.insert(known.end(), {kLrScale, kMostDimensions});
  for (size_t i = 0; i < group_options_.size(); ++i) {
    if (group_options_[i].params.empty()) {
      throw UsageError(fmt::format("params[{}]: expected globs of parameter names, got none", i));
    }
    for (const auto& number : group_options_[i].numbers) {
      if (std::find(known.begin(), known.end(), number.first) == known.end()) {
        throw UsageError(fmt::format("params[{}]: the optimizer has no number \"{}\"{}",
                                     i,
                                     number.first,
                                     suggestion(number.first, known)));
      }
    }
  }
}

ParamGroup Optimizer::make_group(const ParamGroupOptions& options) const {
  const double lr_scale = own_number(options, kLrScale).value_or(1.0);
  NamedTensors numbers;
  for (const auto& [name, value] : numbers_) {
    const bool is_scaled = name == "lr" || name == "initial_lr" || name == "adamw_lr";
    numbers.emplace_back(
        name,
        number_tensor(own_number(options, name).value_or(value) * (is_scaled ? lr_scale : 1.0)));
  }
  // All groups have it where one does: a state's groups are alike.
  if (std::any_of(group_options_.begin(), group_options_.end(), [](const ParamGroupOptions& o) {
        return own_number(o, kLrScale).has_value();
      })) {
    numbers.emplace_back(kLrScale, number_tensor(lr_scale));
  }
  return ParamGroup(options.tag, std::move(numbers));
}

std::vector<size_t> Optimizer::groups_of(const NamedTensors& parameters) const {
  std::vector<size_t> groups;
  std::vector<bool> is_used(group_options_.size() + 1, false);
  for (const NamedTensor& parameter : parameters) {
    const auto picks = [&](const ParamGroupOptions& o) { return matches(o, parameter); };
    const auto first = std::find_if(group_options_.begin(), group_options_.end(), picks);
    const bool is_default = first == group_options_.end();
    groups.push_back(is_default ? 0 : static_cast<size_t>(first - group_options_.begin()) + 1);
    is_used[groups.back()] = true;
  }
  for (size_t i = 0; i < group_options_.size(); ++i) {
    if (!is_used[i + 1] && !own_number(group_options_[i], kMostDimensions)) {
      throw UsageError(fmt::format(
          "params[{}]: [\"{}\"] picks no parameter that is trained and that an earlier entry left; "
          "there are: {}",
          i,
          fmt::join(group_options_[i].params, "\", \""),
          fmt::join(names_of(parameters), ", ")));
    }
  }
  return groups;
}

std::vector<StateShape> Optimizer::states_of(const NamedTensor& parameter) const {
  std::vector<StateShape> states;
  for (const std::string& name : state_names_) {
    states.push_back({name, parameter.second.sizes().vec()});
  }
  return states;
}

// The first state of all own parameters, then the second: each parameter's place in its list is the
// same in every list.
std::vector<NamedTensors> Optimizer::make_states(const NamedTensors& parameters,
                                                 const std::vector<bool>& is_own) {
  std::vector<std::vector<StateShape>> shapes;
  size_t most = 0;
  for (const NamedTensor& parameter : parameters) {
    shapes.push_back(states_of(parameter));
    most = std::max(most, shapes.back().size());
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!is_own[i]) {
      elsewhere_[parameters[i].first];  // also where there is no state
    }
  }
  FlatMemory memory;
  for (size_t s = 0; s < most; ++s) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (is_own[i] && s < shapes[i].size()) {
        const at::Tensor& value = parameters[i].second;
        const bool is_alike = value.sizes() == at::IntArrayRef(shapes[i][s].sizes);
        memory.add_like(is_alike ? value : at::empty(shapes[i][s].sizes, value.options()));
      }
    }
  }
  const std::vector<at::Tensor> tensors = memory.allocate();
  std::vector<NamedTensors> states(parameters.size());
  auto next = tensors.begin();
  for (size_t s = 0; s < most; ++s) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (s >= shapes[i].size()) {
        continue;
      }
      const auto& [name, sizes] = shapes[i][s];
      if (is_own[i]) {
        states[i].emplace_back(name, next++->zero_());
      } else {
        elsewhere_[parameters[i].first].emplace_back(
            name, at::empty(sizes, parameters[i].second.options().device(at::kMeta)));
      }
    }
  }
  for (const std::string& name : counters_) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (is_own[i]) {  // on the parameter's device, so that a step need not leave it
        states[i].emplace_back(name, number_tensor(0.0).to(parameters[i].second.device()));
      } else {
        elsewhere_[parameters[i].first].emplace_back(
            name, at::empty({}, at::TensorOptions(at::kDouble).device(at::kMeta)));
      }
    }
  }
  return states;
}

void Optimizer::attach(const NamedTensors& parameters,
                       Masters masters,
                       std::shared_ptr<UpdateSharing> sharing) {
  if (!groups_.empty()) {
    throw UsageError("the optimizer is attached to a model already");
  }
  NamedTensors chosen = trainable(parameters);
  const std::vector<size_t> groups_of_chosen = groups_of(chosen);
  std::vector<ParamGroup> groups = {make_group({})};
  for (const ParamGroupOptions& options : group_options_) {
    groups.push_back(make_group(options));
  }
  masters_ =
      masters == Masters::Float32 ? make_masters(chosen) : std::vector<at::Tensor>(chosen.size());
  NamedTensors updated = chosen;
  for (size_t i = 0; i < updated.size(); ++i) {
    if (masters_[i].defined()) {
      updated[i].second = masters_[i];
    }
  }
  std::vector<NamedTensors> states = make_states(
      updated, sharing ? sharing->share(updated) : std::vector<bool>(updated.size(), true));
  lay_out(chosen);
  for (size_t i = 0; i < updated.size(); ++i) {
    if (masters_[i].defined()) {
      states[i].emplace_back("master", masters_[i]);
    }
    groups[groups_of_chosen[i]].params.emplace_back(
        updated[i].first, updated[i].second, std::move(states[i]));
  }
  const auto is_empty = [](const ParamGroup& group) { return group.params.empty(); };
  groups.erase(std::remove_if(groups.begin(), groups.end(), is_empty), groups.end());
  groups_ = std::move(groups);
  parameters_ = std::move(chosen);
  sharing_ = std::move(sharing);
  on_attached();
}

void Optimizer::step(const Evaluate& evaluate, const at::Tensor& skip) {
  if (groups_.empty()) {
    throw UsageError("the optimizer has no parameters yet: attach it to a model first");
  }
  for (const NamedTensor& parameter : parameters_) {
    check_dense(parameter);
  }
  evaluate_ = &evaluate;
  skip_ = &skip;
  const at::NoGradGuard no_grad;
  const bool skips_elsewhere = skip.defined() && !skips_itself();
  if (skips_elsewhere && eager_only().empty()) {
    update_unless(skip);
  } else if (!skips_elsewhere || !skip.item<bool>()) {
    update_groups();
  }
  exchange_values();
  round_masters();
}

void Optimizer::update_groups() {
  for (ParamGroup& group : groups_) {
    if (!sharing_) {
      update(group);
    } else if (ParamGroup own = own_part(group); !own.params.empty()) {
      update(own);
    }
  }
}

/// The group with the parameters that this process updates.
ParamGroup Optimizer::own_part(const ParamGroup& group) const {
  ParamGroup own(group.tag, group.numbers());
  for (const Parameter& parameter : group.params) {
    if (elsewhere_.count(parameter.name) == 0) {
      own.params.push_back(parameter);
    }
  }
  return own;
}

void Optimizer::exchange_values() {
  if (!sharing_) {
    return;
  }
  std::vector<at::Tensor> values;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    values.push_back(masters_[i].defined() ? masters_[i] : parameters_[i].second.detach());
  }
  sharing_->exchange(values);
}

void Optimizer::update_unless(const at::Tensor& skip) {
  std::vector<at::Tensor> written;
  for (const ParamGroup& group : groups_) {
    for (const Parameter& parameter : group.params) {
      written.push_back(parameter.value);
      for (const NamedTensor& state : parameter.states()) {
        if (!state.second.is_same(parameter.value)) {
          written.push_back(state.second);
        }
      }
    }
  }
  std::vector<at::Tensor> before;
  before.reserve(written.size());
  for (const at::Tensor& tensor : written) {
    before.push_back(tensor.clone());
  }
  update_groups();
  for (size_t i = 0; i < written.size(); ++i) {
    written[i].copy_(at::where(skip.to(written[i].device()), before[i], written[i]));
  }
}

void Optimizer::round_masters() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (masters_[i].defined()) {
      parameters_[i].second.copy_(masters_[i]);
    }
  }
}

void Optimizer::gather_grads() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& grad = parameters_[i].second.mutable_grad();
    if (masters_[i].defined() && grad.defined()) {
      check_dense(parameters_[i]);
      at::Tensor& sum = masters_[i].mutable_grad();
      sum = sum.defined() ? sum.add_(grad) : grad.to(at::kFloat);
      grad.reset();
    }
  }
}

void Optimizer::follow_parameters() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (masters_[i].defined()) {
      masters_[i].copy_(parameters_[i].second);
    }
  }
}

void Optimizer::zero_grad() {
  bind_grads(false);
}

void Optimizer::keep_grads() {
  const at::NoGradGuard no_grad;
  if (grad_memory_.empty()) {
    FlatMemory memory;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      memory.add_like(masters_[i].defined() ? masters_[i] : parameters_[i].second);
    }
    grad_memory_ = memory.allocate();
    kept_grads_.resize(grad_memory_.size());
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    check_dense(parameters_[i]);
    at::Tensor& grad = parameters_[i].second.mutable_grad();
    at::Tensor& kept = masters_[i].defined() ? masters_[i].mutable_grad() : grad;
    if (!grad.defined() || grad.is_same(grad_memory_[i])) {
      continue;
    }
    if (kept.is_same(grad_memory_[i])) {
      kept.add_(grad);  // in a master, where autograd does not add
    } else {
      kept_grads_[i] = grad_memory_[i];
      kept_grads_[i].copy_(grad);
      kept = kept_grads_[i];
    }
    if (masters_[i].defined()) {
      grad.reset();
    }
  }
}

void Optimizer::bind_grads(bool bound) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const bool is_kept = bound && i < kept_grads_.size() && parameters_[i].second.requires_grad();
    const at::Tensor kept = is_kept ? kept_grads_[i] : at::Tensor();
    parameters_[i].second.mutable_grad() = masters_[i].defined() ? at::Tensor() : kept;
    if (masters_[i].defined()) {
      masters_[i].mutable_grad() = kept;
    }
  }
}

std::vector<at::Tensor> Optimizer::grads() const {
  std::vector<at::Tensor> grads;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& updated = masters_[i].defined() ? masters_[i] : parameters_[i].second;
    if (updated.grad().defined()) {
      grads.push_back(updated.grad());
    }
  }
  return grads;
}

}  // namespace rondo
