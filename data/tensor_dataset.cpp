#include "data/tensor_dataset.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "data/internal/rows.h"

namespace rondo {

TensorDataset::TensorDataset(const Options& options) {
  if (options.tensors.empty()) {
    throw UsageError("TensorDataset: tensors must hold at least one tensor, got none");
  }
  for (const auto& [name, tensor] : options.tensors.items()) {
    if (!tensor.defined() || tensor.dim() == 0) {
      throw UsageError(fmt::format(
          "TensorDataset: tensor \"{}\" must have the samples as its first dimension, got {}",
          name,
          tensor.defined() ? "a 0-dim tensor" : "an undefined tensor"));
    }
    if (!rows_.empty() && tensor.size(0) != size()) {
      throw UsageError(fmt::format("TensorDataset: tensor \"{}\" has {} samples, \"{}\" has {}",
                                   name,
                                   tensor.size(0),
                                   rows_.items().front().first,
                                   size()));
    }
    rows_.set(name, tensor.detach().resolve_conj().resolve_neg().cpu().contiguous());
  }
}

int64_t TensorDataset::size() const {
  return rows_.items().front().second.size(0);
}

Sample TensorDataset::get(int64_t index) const {
  return detail::only_sample(get_batch({index}));
}

Batch TensorDataset::get_batch(const std::vector<int64_t>& indices) const {
  Batch batch;
  for (const auto& [name, rows] : rows_.items()) {
    batch.set(name, detail::gather_rows(rows, indices));
  }
  return batch;
}

Factory<DataSource> from_tensors(TensorMap tensors) {
  return use<TensorDataset>({std::move(tensors)});
}

}  // namespace rondo
