#include "callbacks/core/sharded_updates.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "trainer/trainer.h"

namespace rondo {

std::vector<int> owners_of(const std::vector<int64_t>& elements, int processes) {
  const auto all = std::accumulate(elements.begin(), elements.end(), int64_t{0});
  std::vector<int> owners;
  int64_t before = 0;
  for (const int64_t count : elements) {
    const double middle = static_cast<double>(before) + static_cast<double>(count) / 2;
    const double share = middle / static_cast<double>(std::max<int64_t>(all, 1));
    owners.push_back(std::min(static_cast<int>(share * processes), processes - 1));
    before += count;
  }
  return owners;
}

ShardedUpdates::ShardedUpdates(Trainer& trainer)
    : trainer_(trainer), communicator_(*trainer.state().communicator) {}

std::vector<bool> ShardedUpdates::share(const NamedTensors& parameters) {
  std::vector<int64_t> elements;
  for (const NamedTensor& parameter : parameters) {
    elements.push_back(parameter.second.numel());
  }
  in_order_ = owners_of(elements, communicator_.world_size());
  std::vector<bool> is_own;
  for (size_t i = 0; i < parameters.size(); ++i) {
    owners_[parameters[i].first] = in_order_[i];
    is_own.push_back(in_order_[i] == communicator_.rank());
  }
  return is_own;
}

// A host call, as the sum of gradients is: a replay makes it exactly once.
void ShardedUpdates::exchange(const std::vector<at::Tensor>& values) {
  trainer_.host_call("exchange", values, [this](const std::vector<at::Tensor>& all) {
    for (size_t begin = 0; begin < all.size();) {
      const size_t end = end_of_parcel(all, begin);
      send(all, begin, end);
      begin = end;
    }
  });
}

/// Neighbouring tensors of one owner travel together while they are small.
size_t ShardedUpdates::end_of_parcel(const std::vector<at::Tensor>& all, size_t begin) const {
  constexpr size_t kBytes = 1 << 20;
  size_t bytes = 0;
  size_t end = begin;
  while (end < all.size() && in_order_[end] == in_order_[begin] &&
         (end == begin || bytes + all[end].nbytes() <= kBytes)) {
    bytes += all[end++].nbytes();
  }
  return end;
}

void ShardedUpdates::send(const std::vector<at::Tensor>& all, size_t begin, size_t end) {
  const int owner = in_order_[begin];
  if (end == begin + 1 && all[begin].is_contiguous()) {
    at::Tensor whole = all[begin];
    communicator_.broadcast(whole, owner);
    return;
  }
  const auto first = all.begin();
  const std::vector<at::Tensor> parcel(first + static_cast<std::ptrdiff_t>(begin),
                                       first + static_cast<std::ptrdiff_t>(end));
  rooms_.each_dtype(parcel, [&](at::Tensor& flat) { communicator_.broadcast(flat, owner); });
}

StateDict ShardedUpdates::gathered(const StateDict& state) const {
  const bool keeps_all = communicator_.rank() == 0;
  StateDict states;
  for (const auto& [parameter, saved] : state.at("state").as_dict().items()) {
    const int owner = owners_.at(parameter);
    const bool is_own = owner == communicator_.rank();
    StateDict tensors;
    for (const auto& [name, value] : saved.as_dict().items()) {
      const at::Tensor& tensor = value.as_tensor();
      at::Tensor sent = is_own ? tensor.contiguous()
                               : at::empty(tensor.sizes(), at::TensorOptions(tensor.scalar_type()));
      communicator_.broadcast(sent, owner);
      tensors.set(name, is_own || keeps_all ? sent : tensor);
    }
    states.set(parameter, std::move(tensors));
  }
  return {{"state", std::move(states)}, {"groups", state.at("groups")}};
}

}  // namespace rondo
