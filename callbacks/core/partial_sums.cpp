#include "callbacks/core/partial_sums.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>

#include "core/flat_memory.h"

namespace rondo {

void PartialSums::add(const std::vector<at::Tensor>& values, const RankEnd& end) {
  const at::NoGradGuard no_grad;
  for (size_t level = 0; level < end.earlier_sums; ++level) {
    const std::vector<at::Tensor>& sums = kept_like(values, level);
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].defined()) {
        values[i].add_(sums[i]);
      }
    }
  }
  if (end.is_last) {
    return;
  }
  const std::vector<at::Tensor>& kept = kept_like(values, end.earlier_sums);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].defined()) {
      kept[i].copy_(values[i]);
    }
  }
}

const std::vector<at::Tensor>& PartialSums::kept_like(const std::vector<at::Tensor>& values,
                                                      size_t level) {
  if (kept_.size() <= level) {
    kept_.resize(level + 1);
  }
  std::vector<at::Tensor>& kept = kept_[level];
  kept.resize(values.size());
  FlatMemory memory;
  std::vector<size_t> missing;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].defined() && !kept[i].defined()) {
      memory.add_like(values[i]);
      missing.push_back(i);
    }
  }
  if (!missing.empty()) {
    const std::vector<at::Tensor> made = memory.allocate();
    for (size_t m = 0; m < made.size(); ++m) {
      kept[missing[m]] = made[m];
    }
  }
  return kept;
}

void PartialSums::append_to(NamedTensors& all, const std::string& name) const {
  for (size_t level = 0; level < kept_.size(); ++level) {
    for (size_t i = 0; i < kept_[level].size(); ++i) {
      if (kept_[level][i].defined()) {
        all.emplace_back(name + "/" + std::to_string(level) + "/" + std::to_string(i),
                         kept_[level][i]);
      }
    }
  }
}

}  // namespace rondo
