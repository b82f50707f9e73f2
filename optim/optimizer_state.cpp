// What an optimizer saves, loads and shows to those who record its steps.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <string_view>

#include "core/error.h"
#include "optim/optimizer.h"

namespace rondo {

namespace {

/// Tensors to write, with what to write: gathered whole before the first is written.
using Transfers = std::vector<std::pair<at::Tensor, at::Tensor>>;

[[noreturn]] void fail(const std::string& where,
                       const std::string& expected,
                       const std::string& got) {
  throw CheckpointError(
      fmt::format("optimizer state {}: expected {}, found {}", where, expected, got));
}

const StateDict& dict_at(const StateValue& value, std::string_view where) {
  if (!value.is_dict()) {
    fail(std::string(where), "a dictionary", value.kind());
  }
  return value.as_dict();
}

void add_tensor(const std::string& where,
                const at::Tensor& to,
                const StateValue& from,
                Transfers& transfers) {
  const bool fits = from.is_tensor() && from.as_tensor().sizes() == to.sizes() &&
                    from.as_tensor().scalar_type() == to.scalar_type();
  if (!fits) {
    fail(where, StateValue(to).kind(), from.kind());
  }
  if (!to.is_meta()) {
    transfers.emplace_back(to, from.as_tensor());
  }
}

/// \param layout  the tensors of the parameter, also those that another process keeps
void add_parameter(const std::string& name,
                   const NamedTensors& layout,
                   const StateDict& saved,
                   Transfers& transfers) {
  const std::string where = "of \"" + name + "\"";
  if (saved.size() != layout.size()) {
    fail(where,
         fmt::format("{} tensors", layout.size()),
         fmt::format("[{}]", fmt::join(saved.names(), ", ")));
  }
  for (const NamedTensor& state : layout) {
    const StateValue* found = saved.find(state.first);
    if (found == nullptr) {
      fail(where, state.first, fmt::format("[{}]", fmt::join(saved.names(), ", ")));
    }
    add_tensor(where + " " + state.first, state.second, *found, transfers);
  }
}

void add_group(const ParamGroup& group,
               const StateDict& saved,
               const std::string& where,
               Transfers& transfers) {
  if (saved.at("tag").as_string() != group.tag) {
    fail(where, "tag \"" + group.tag + "\"", "\"" + saved.at("tag").as_string() + "\"");
  }
  if (saved.size() != group.numbers().size() + 1) {
    fail(where,
         fmt::format("{} numbers", group.numbers().size()),
         fmt::format("[{}]", fmt::join(saved.names(), ", ")));
  }
  for (const NamedTensor& number : group.numbers()) {
    const double value = saved.at(number.first).as_double();
    transfers.emplace_back(number.second, at::scalar_tensor(value, at::kDouble));
  }
}

/// Numbers that Python has in pairs.
struct Paired {
  std::string_view number;
  std::string_view pair;
  size_t index;
};

constexpr Paired kPairs[] = {{"beta1", "betas", 0},
                             {"beta2", "betas", 1},
                             {"etaminus", "etas", 0},
                             {"etaplus", "etas", 1},
                             {"step_size_min", "step_sizes", 0},
                             {"step_size_max", "step_sizes", 1}};

/// A number of one of Python's `param_groups`, or null.
const StateValue* number_in(const StateDict& saved, const std::string& name) {
  for (const Paired& paired : kPairs) {
    const StateValue* pair = paired.number == name ? saved.find(paired.pair) : nullptr;
    if (pair != nullptr && pair->as_list().size() == 2) {
      return &pair->as_list()[paired.index];
    }
  }
  return saved.find(name);
}

StateValue number(double value) {
  return at::scalar_tensor(value, at::kDouble);
}

/// What Python keeps for a parameter: counts in float or int, and nothing before the first update
/// (nor a count of SGD's: a buffer says that there was one).
StateDict parameter_from_python(const std::string& name,
                                const NamedTensors& layout,
                                const StateDict* saved) {
  StateDict made;
  for (const NamedTensor& own : layout) {
    const bool is_counter = own.second.dim() == 0 && own.second.scalar_type() == at::kDouble;
    const StateValue* found = saved != nullptr ? saved->find(own.first) : nullptr;
    const bool is_number = found != nullptr && (!found->is_tensor() || is_counter);
    if (own.first == "master" && (saved == nullptr || saved->find(own.first) == nullptr)) {
      made.set(own.first, own.second);
    } else if (saved == nullptr || saved->empty()) {
      made.set(own.first, at::zeros_like(own.second));
    } else if (found == nullptr && is_counter) {
      made.set(own.first, number(1.0));
    } else if (found == nullptr) {
      fail("of \"" + name + "\"", own.first, fmt::format("[{}]", fmt::join(saved->names(), ", ")));
    } else {
      made.set(own.first, is_number ? number(found->as_double()) : *found);
    }
  }
  return made;
}

/// A state that Python's `torch.optim` saved, as rondo saves it: parameters have numbers there, in
/// the order of the groups.
StateDict from_python(const StateDict& state,
                      const std::vector<ParamGroup>& own,
                      const std::function<NamedTensors(const Parameter&)>& layout_of) {
  const StateDict& saved_states = dict_at(state.at("state"), "\"state\"");
  const StateList& saved_groups = state.at("param_groups").as_list();
  if (saved_groups.size() != own.size()) {
    fail("\"param_groups\"",
         fmt::format("{} groups", own.size()),
         std::to_string(saved_groups.size()));
  }
  StateDict states;
  StateList groups;
  for (size_t i = 0; i < own.size(); ++i) {
    const StateDict& saved = dict_at(saved_groups[i], fmt::format("of group {}", i));
    const StateList& ids = saved.at("params").as_list();
    if (ids.size() != own[i].params.size()) {
      fail(fmt::format("of group {}", i),
           fmt::format("{} parameters", own[i].params.size()),
           std::to_string(ids.size()));
    }
    StateDict numbers = {{"tag", own[i].tag}};
    for (const NamedTensor& now : own[i].numbers()) {
      const StateValue* found = number_in(saved, now.first);
      numbers.set(now.first, found != nullptr ? number(found->as_double()) : now.second);
    }
    groups.emplace_back(std::move(numbers));
    for (size_t p = 0; p < ids.size(); ++p) {
      const StateValue* found = saved_states.find(std::to_string(ids[p].as_int()));
      const Parameter& parameter = own[i].params[p];
      states.set(parameter.name,
                 parameter_from_python(parameter.name,
                                       layout_of(parameter),
                                       found != nullptr ? &dict_at(*found, "\"state\"") : nullptr));
    }
  }
  return {{"state", std::move(states)}, {"groups", std::move(groups)}};
}

}  // namespace

NamedTensors Optimizer::layout_of(const Parameter& parameter) const {
  NamedTensors layout;
  if (const auto found = elsewhere_.find(parameter.name); found != elsewhere_.end()) {
    layout = found->second;
  }
  layout.insert(layout.end(), parameter.states().begin(), parameter.states().end());
  return layout;
}

StateDict Optimizer::state_dict() const {
  StateDict states;
  StateList groups;
  for (const ParamGroup& group : groups_) {
    StateDict saved = {{"tag", group.tag}};
    for (const NamedTensor& number : group.numbers()) {
      saved.set(number.first, number.second);
    }
    groups.emplace_back(std::move(saved));
    for (const Parameter& parameter : group.params) {
      StateDict tensors;
      for (const NamedTensor& state : layout_of(parameter)) {
        tensors.set(state.first, state.second);
      }
      states.set(parameter.name, std::move(tensors));
    }
  }
  return {{"state", std::move(states)}, {"groups", std::move(groups)}};
}

void Optimizer::load(const StateDict& given) {
  const auto layout = [this](const Parameter& parameter) { return layout_of(parameter); };
  const StateDict state =
      given.contains("param_groups") ? from_python(given, groups_, layout) : given;
  const StateDict& states = dict_at(state.at("state"), "\"state\"");
  const StateList& groups = state.at("groups").as_list();
  if (groups.size() != groups_.size()) {
    fail("\"groups\"", fmt::format("{} groups", groups_.size()), std::to_string(groups.size()));
  }
  if (states.size() != parameters_.size()) {
    fail("\"state\"",
         fmt::format("{} parameters", parameters_.size()),
         fmt::format("[{}]", fmt::join(states.names(), ", ")));
  }
  Transfers transfers;
  for (size_t i = 0; i < groups_.size(); ++i) {
    const std::string where = fmt::format("of group {}", i);
    add_group(groups_[i], dict_at(groups[i], where), where, transfers);
    for (const Parameter& parameter : groups_[i].params) {
      const StateValue* saved = states.find(parameter.name);
      if (saved == nullptr) {
        fail("\"state\"",
             "parameter \"" + parameter.name + "\"",
             fmt::format("[{}]", fmt::join(states.names(), ", ")));
      }
      add_parameter(parameter.name,
                    layout_of(parameter),
                    dict_at(*saved, "of \"" + parameter.name + "\""),
                    transfers);
    }
  }
  const at::NoGradGuard no_grad;
  for (auto& [to, from] : transfers) {
    to.copy_(from);
  }
}

NamedTensors Optimizer::captured_state() const {
  NamedTensors captured;
  for (const NamedTensor& parameter : parameters_) {
    captured.emplace_back("param/" + parameter.first, parameter.second);
  }
  for (size_t i = 0; i < groups_.size(); ++i) {
    for (const NamedTensor& number : groups_[i].numbers()) {
      captured.emplace_back(fmt::format("group/{}/{}", i, number.first), number.second);
    }
    for (const Parameter& parameter : groups_[i].params) {
      for (const NamedTensor& state : parameter.states()) {
        captured.emplace_back("state/" + parameter.name + "/" + state.first, state.second);
      }
    }
  }
  for (size_t i = 0; i < kept_grads_.size(); ++i) {
    if (kept_grads_[i].defined()) {
      captured.emplace_back("grad/" + parameters_[i].first, kept_grads_[i]);
    }
  }
  return captured;
}

}  // namespace rondo
