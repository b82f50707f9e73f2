#include "sparsity/masks.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/glob.h"

namespace rondo {

namespace {

bool picks(const SparsityOptions& options, const std::string& name, const at::Tensor& weight) {
  if (options.params.empty()) {
    return weight.dim() >= 2;
  }
  return matches_any(options.params, name);
}

/// Whether there is anything to mask. A share that is no number is told by the group.
bool is_none(const SparsitySchedule& schedule) {
  return schedule.from == 0.0 && schedule.to == 0.0;
}

void add_groups(const SparsityOptions& options, std::vector<MaskGroup>& groups) {
  for (const SparsityOptions& group : options.groups) {
    add_groups(group, groups);
  }
  if (!is_none(options.sparsity) || options.init == "from_zeros") {
    groups.emplace_back(options);
  }
}

/// The groups with their masks, each as often as there are owners of its weights.
std::vector<MaskGroup> by_owner(std::vector<MaskGroup> groups,
                                std::vector<std::vector<Mask>>& found,
                                const OwnerOf& owner_of) {
  std::vector<MaskGroup> split;
  for (size_t i = 0; i < groups.size(); ++i) {
    const size_t first = split.size();
    for (Mask& mask : found[i]) {
      const void* const owner = owner_of ? owner_of(mask.weight()) : nullptr;
      auto group = std::find_if(split.begin() + static_cast<std::ptrdiff_t>(first),
                                split.end(),
                                [&](const MaskGroup& other) { return other.owner() == owner; });
      if (group == split.end()) {
        split.emplace_back(groups[i].options()).set_owner(owner);
        group = split.end() - 1;
      }
      group->add(std::move(mask));
    }
  }
  return split;
}

bool is_meant(const MaskGroup& group, const void* owner) {
  return owner == nullptr || group.owner() == nullptr || group.owner() == owner;
}

}  // namespace

SparsityMasks::SparsityMasks(const SparsityOptions& options) {
  add_groups(options, groups_);
}

void SparsityMasks::apply(const NamedTensors& parameters, const OwnerOf& owner_of) {
  if (!all().empty()) {
    throw UsageError("the masks are applied to a model already");
  }
  std::vector<std::string> names;
  std::vector<std::vector<Mask>> found(groups_.size());
  std::vector<at::Tensor> seen;
  for (const auto& [name, tensor] : parameters) {
    names.push_back(name);
    const at::Tensor& weight = tensor;
    const auto group = std::find_if(groups_.begin(), groups_.end(), [&, &label = name](auto& one) {
      return picks(one.options(), label, weight);
    });
    const bool is_tied = std::any_of(
        seen.begin(), seen.end(), [&](const at::Tensor& other) { return other.is_same(weight); });
    if (group != groups_.end() && !is_tied) {
      seen.push_back(weight);
      found[static_cast<size_t>(group - groups_.begin())].emplace_back(name, weight);
    }
  }
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (found[i].empty()) {
      throw UsageError(fmt::format("sparsity.params: [{}] match no parameter{}; there are: {}",
                                   fmt::join(groups_[i].options().params, ", "),
                                   i > 0 ? " that no group before has" : "",
                                   fmt::join(names, ", ")));
    }
  }
  groups_ = by_owner(std::move(groups_), found, owner_of);
  choose();
}

std::vector<const Mask*> SparsityMasks::all() const {
  std::vector<const Mask*> all;
  for (const MaskGroup& group : groups_) {
    for (const Mask& mask : group.masks()) {
      all.push_back(&mask);
    }
  }
  return all;
}

const Mask* SparsityMasks::mask_of(const at::Tensor& weight) const {
  for (const Mask* const mask : all()) {
    if (mask->weight().is_same(weight)) {
      return mask;
    }
  }
  return nullptr;
}

void SparsityMasks::choose() {
  const at::NoGradGuard no_grad;
  for (MaskGroup& group : groups_) {
    group.choose();
  }
  zero_weights();
  for (const Mask* mask : all()) {
    mask->zero_states();
  }
}

void SparsityMasks::add_states(const at::Tensor& weight,
                               const NamedTensors& states,
                               const at::Tensor& updated) {
  const at::NoGradGuard no_grad;
  for (MaskGroup& group : groups_) {
    for (Mask& mask : group.masks()) {
      if (mask.weight().is_same(weight)) {
        mask.set_updated(updated);
        for (const NamedTensor& state : states) {
          mask.add_state(state.second);
        }
        mask.zero_weight();
        mask.zero_states();
      }
    }
  }
}

void SparsityMasks::zero_weights() const {
  for (const Mask* mask : all()) {
    mask->zero_weight();
  }
}

void SparsityMasks::mask_gradients(const void* owner) {
  const at::NoGradGuard no_grad;
  for (MaskGroup& group : groups_) {
    if (!is_meant(group, owner)) {
      continue;
    }
    if (group.is_due()) {
      group.keep_gradients();
    }
    for (const Mask& mask : group.masks()) {
      mask.zero_gradient();
    }
  }
}

void SparsityMasks::after_update(const void* owner) {
  const at::NoGradGuard no_grad;
  for (MaskGroup& group : groups_) {
    if (!is_meant(group, owner)) {
      continue;
    }
    for (const Mask& mask : group.masks()) {
      mask.zero_weight();
    }
    if (!group.is_due()) {
      continue;
    }
    // Some rules add a constant to what they keep, whatever the gradient: weights that grow begin
    // with zero.
    for (const Mask& mask : group.masks()) {
      mask.zero_states();
    }
    group.change();
    for (const Mask& mask : group.masks()) {
      mask.zero_weight();
      mask.zero_states();
    }
  }
}

StateDict SparsityMasks::state_dict() const {
  StateDict masks;
  for (const Mask* mask : all()) {
    masks.set(mask->name(), mask->kept());
  }
  return {{"masks", std::move(masks)}};
}

void SparsityMasks::check(const StateDict& state) const {
  const StateDict& saved = state.at("masks").as_dict();
  for (const std::string& name : saved.names()) {
    const std::vector<const Mask*> own = all();
    if (std::none_of(
            own.begin(), own.end(), [&](const Mask* mask) { return mask->name() == name; })) {
      throw CheckpointError(fmt::format(
          "sparsity: the checkpoint has a mask of \"{}\", which this run does not mask; mask the "
          "parameters that the checkpoint's run did: [{}]",
          name,
          fmt::join(saved.names(), ", ")));
    }
  }
  for (const Mask* mask : all()) {
    const StateValue* found = saved.find(mask->name());
    const std::string expected = StateValue(mask->kept()).kind();
    const std::string kind = found == nullptr ? "nothing" : found->kind();
    if (kind != expected) {
      throw CheckpointError(
          fmt::format("sparsity: expected for \"{}\" {}, found {}", mask->name(), expected, kind));
    }
  }
}

void SparsityMasks::load(const StateDict& state) {
  check(state);
  const StateDict& saved = state.at("masks").as_dict();
  const at::NoGradGuard no_grad;
  for (MaskGroup& group : groups_) {
    for (Mask& mask : group.masks()) {
      mask.set(saved.at(mask.name()).as_tensor());
    }
  }
  zero_weights();  // the optimizer's state is that of the run, which some rules add to
}

double SparsityMasks::sparsity() const {
  int64_t elements = 0;
  int64_t kept = 0;
  for (const Mask* mask : all()) {
    elements += mask->weight().numel();
    kept += mask->bits().count_nonzero().item<int64_t>();
  }
  return elements > 0 ? 1.0 - static_cast<double>(kept) / static_cast<double>(elements) : 0.0;
}

NamedTensors SparsityMasks::captured_state() const {
  NamedTensors captured;
  for (const Mask* mask : all()) {
    captured.emplace_back("mask/" + mask->name(), mask->bits());
  }
  for (size_t i = 0; i < groups_.size(); ++i) {
    const NamedTensors numbers = groups_[i].numbers(fmt::format("group/{}/", i));
    captured.insert(captured.end(), numbers.begin(), numbers.end());
  }
  return captured;
}

}  // namespace rondo
