#include "pymarlin/module_interface.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "checkpoint/state_layout.h"
#include "core/error.h"
#include "models/model_state.h"

namespace rondo::pymarlin {

StateDict ModuleInterface::get_state() const {
  return model_state(*this);
}

void ModuleInterface::update_state(const StateDict& state) {
  if (state.empty()) {
    return;
  }
  const StateDict own = get_state();
  const std::vector<std::string> differences = layout_differences(own, state);
  if (!differences.empty()) {
    throw CheckpointError(
        fmt::format("update_state: the state is another model's: {}, {} differences in all",
                    differences.front(),
                    differences.size()));
  }
  const at::NoGradGuard no_grad;
  for (const StateDict::Item& item : own.items()) {
    item.second.as_tensor().detach().copy_(state.at(item.first).as_tensor());
  }
}

}  // namespace rondo::pymarlin
