#include "models/loss_parts.h"

#include <ATen/core/Tensor.h>

namespace rondo {

std::vector<std::string> loss_parts(const Outputs& outputs) {
  constexpr std::string_view kPrefix = "loss/";
  std::vector<std::string> names;
  for (const auto& item : outputs.items()) {
    if (item.first.compare(0, kPrefix.size(), kPrefix) == 0) {
      names.push_back(item.first);
    }
  }
  return names;
}

void add_loss_of_parts(Outputs& outputs) {
  if (outputs.find("loss") != nullptr) {
    return;
  }
  at::Tensor sum;
  for (const std::string& name : loss_parts(outputs)) {
    sum = sum.defined() ? sum.add(outputs[name]) : outputs[name];
  }
  if (sum.defined()) {
    outputs.set("loss", sum);
  }
}

}  // namespace rondo
