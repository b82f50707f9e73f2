// What an optimizer saves, loads and shows to those who record its steps.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

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
  transfers.emplace_back(to, from.as_tensor());
}

void add_parameter(const Parameter& parameter, const StateDict& saved, Transfers& transfers) {
  const std::string where = "of \"" + parameter.name + "\"";
  if (saved.size() != parameter.states().size()) {
    fail(where,
         fmt::format("{} tensors", parameter.states().size()),
         fmt::format("[{}]", fmt::join(saved.names(), ", ")));
  }
  for (const NamedTensor& state : parameter.states()) {
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

}  // namespace

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
      for (const NamedTensor& state : parameter.states()) {
        tensors.set(state.first, state.second);
      }
      states.set(parameter.name, std::move(tensors));
    }
  }
  return {{"state", std::move(states)}, {"groups", std::move(groups)}};
}

void Optimizer::load(const StateDict& state) {
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
      add_parameter(parameter, dict_at(*saved, "of \"" + parameter.name + "\""), transfers);
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
