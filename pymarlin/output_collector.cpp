#include "pymarlin/output_collector.h"

#include <ATen/ops/cat.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/error.h"

namespace rondo::pymarlin {

namespace {

std::string name_of(size_t place) {
  return place == 0 ? "loss" : fmt::format("output_{}", place);
}

}  // namespace

void OutputCollector::collect(const Outputs& outputs) {
  for (size_t place = 0;; ++place) {
    const at::Tensor* const output = outputs.find(name_of(place));
    if (output == nullptr) {
      return;
    }
    parts_.resize(std::max(parts_.size(), place + 1));
    const at::Tensor host =
        output->detach().to(at::kCPU, output->scalar_type(), /*non_blocking=*/false, /*copy=*/true);
    parts_[place].push_back(host.dim() == 0 ? host.reshape({1}) : host);
  }
}

CollatedOutputs OutputCollector::joined() const {
  CollatedOutputs joined;
  for (const std::vector<at::Tensor>& parts : parts_) {
    joined.push_back(at::cat(parts));
  }
  return joined;
}

Outputs named(const StepOutputs& outputs) {
  if (outputs.empty()) {
    throw UsageError("a step returned nothing; its first output is the loss");
  }
  Outputs result;
  for (size_t place = 0; place < outputs.size(); ++place) {
    result.set(name_of(place), outputs[place]);
  }
  return result;
}

}  // namespace rondo::pymarlin
